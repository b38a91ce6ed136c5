"""Tool service: how a program that was written for the older tool service uses a hub, as it stands.

``run_tool(ToolCallRequest) -> ToolResult`` was the one way in there (SVC-1), and so it is here: a thin layer over the clients of a
hub. A result is a plain ``dict``, ``{"status": "SUCCESS", "output": …}`` or ``{"status": "FAILURE", "error_type": …, …}``.
What the hub knows beside it (evidence, warnings, how long the answer is fresh) is in the answers of the client itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from unitools.hub.errors import Refused
from unitools.metadata import derive_hub_segment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.hub.clients import AsyncHubClient, HubClient
    from unitools.hub.results import Answer


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """``idempotency_key``: the same for a call that is made again. ``envelope``: what only a hub asks for, as ``user_id``."""

    tool_id: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    timeout_s: float | None = None
    envelope: Mapping[str, Any] = field(default_factory=dict)


class ToolResult(TypedDict):
    """``error_type``: ``TOOL_EXECUTION_ERROR`` or ``TOOL_TIMEOUT_ERROR``, as the older service said of whatever went wrong with the
    tool or on the way to it; else the hub's own reason. Whether the tool has run is not in it.
    """

    status: Literal["SUCCESS", "FAILURE"]
    output: NotRequired[Any]
    post_execution_plan: NotRequired[Any]
    error_type: NotRequired[str]
    error_message: NotRequired[str]
    error_details: NotRequired[Mapping[str, Any]]
    call_id: NotRequired[str]


class _CatalogueNames:
    def __init__(self, group: str) -> None:
        self._group = group

    def id_of(self, tool_id: str) -> str:
        """In a catalogue names had no dots; ``unitools catalogue --as GROUP.PACKAGE`` put them under a package."""
        return tool_id if "." in tool_id or not self._group else f"{self._group}.{derive_hub_segment(tool_id)}"


class ToolService(_CatalogueNames):
    """``group``: the ``group.package`` under which the tools of the older catalogue stand in the hub."""

    def __init__(self, hub: HubClient, *, group: str = "") -> None:
        super().__init__(group)
        self._hub = hub

    def run_tool(self, tool_call_request: ToolCallRequest) -> ToolResult:
        """Waits until the tool has ended. Raises :class:`~unitools.hub.errors.HubError` where nobody knows how it ended."""
        asked = tool_call_request
        try:
            answer = self._hub.invoke(self.id_of(asked.tool_id), asked.arguments, **_options(asked))
        except Refused as refused:
            return build_failure(refused)
        return build_success(answer)


class AsyncToolService(_CatalogueNames):
    """The same without blocking, under asyncio or trio."""

    def __init__(self, hub: AsyncHubClient, *, group: str = "") -> None:
        super().__init__(group)
        self._hub = hub

    async def run_tool(self, tool_call_request: ToolCallRequest) -> ToolResult:
        asked = tool_call_request
        try:
            answer = await self._hub.invoke(self.id_of(asked.tool_id), asked.arguments, **_options(asked))
        except Refused as refused:
            return build_failure(refused)
        return build_success(answer)


def _options(asked: ToolCallRequest) -> dict[str, Any]:
    return {"key": asked.idempotency_key, "timeout_s": asked.timeout_s, **asked.envelope}


def build_success(answer: Answer[Any]) -> ToolResult:
    result = ToolResult(status="SUCCESS", output=answer.data, call_id=answer.call_id)
    if answer.post_execution_plan is not None:
        result["post_execution_plan"] = answer.post_execution_plan
    return result


def build_failure(refused: Refused) -> ToolResult:
    return ToolResult(
        status="FAILURE",
        error_type=refused.error_type or refused.reason or refused.code,
        error_message=refused.message,
        error_details=refused.details,
        call_id=refused.call_id,
    )
