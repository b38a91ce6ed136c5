"""Calls: what a tool is to a model, which call a model proposed, and what came of it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Annotations:
    """What the author says of a tool's effects, in the words of MCP and with its defaults for what nobody said."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """All that a model may see of a tool (TOOLS-12): no tags, no scopes, no injected values."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON Schema 2020-12 of an object
    title: str = ""
    output_schema: Mapping[str, Any] | None = None
    annotations: Annotations = field(default=Annotations())


class CallProblem(StrEnum):
    """Why the arguments of a call cannot be used. Such a call is answered, never run."""

    TRUNCATED = "truncated"  # the model's answer was cut
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    NOT_A_NUMBER = "not_a_number"  # NaN, Infinity
    HUGE_NUMBER = "huge_number"
    DUPLICATE_KEY = "duplicate_key"
    BAD_TEXT = "bad_text"  # half of a surrogate pair
    DUPLICATE_ID = "duplicate_id"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    MALFORMED = "malformed"  # no name, or no call of a function at all
    FENCED = "fenced"  # XML inside a code fence: an example, perhaps

    @property
    def outcome(self) -> Status:
        """How such a call ends."""
        return Status.TRUNCATED if self is CallProblem.TRUNCATED else Status.INVALID_ARGUMENTS


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a driver parsed."""

    id: str  # once in the response; "call_<n>" where the provider gave none
    name: str  # the registry's, or what stood there where no tool has it
    arguments: dict[str, Any] | None  # None when they cannot be used: `problem` says why
    raw: str = ""  # the arguments as they came, bounded
    problem: CallProblem | None = None
    repaired: bool = False
    provider_id: str = ""
    provider_name: str = ""
    meta: Any = None  # carried back unread, as Gemini's thought_signature
    why: str = ""  # the problem in a sentence for the model
    proposed_by: str = ""  # the hub's id of the model's call that it was proposed in


class Status(StrEnum):
    """How a call ended."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    INVALID_ARGUMENTS = "invalid_arguments"
    TRUNCATED = "truncated"
    UNKNOWN_TOOL = "unknown_tool"
    DENIED = "denied"
    NEEDS_APPROVAL = "needs_approval"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    MIDDLEWARE_ERROR = "middleware_error"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call; middlewares return it too, often as ``ToolResult.error("Unauthorized")``."""

    status: Status
    value: Any = None  # JSON, or what to_content() can turn into it
    message: str = ""  # for the model
    code: str = ""
    details: tuple[Mapping[str, Any], ...] = ()
    call: ToolCall | None = None
    duration_ms: float = 0
    executed: bool = False
    skipped_middlewares: tuple[str, ...] = ()
    # What was raised, for the program itself: its text may hold what was injected, so no model and no log reads it.
    cause: BaseException | None = field(default=None, repr=False, compare=False)

    @classmethod
    def ok(cls, value: Any = None) -> ToolResult:
        return cls(Status.OK, value=value)

    @classmethod
    def error(
        cls,
        message: str,
        *,
        status: Status = Status.TOOL_ERROR,
        code: str = "",
        details: Iterable[Mapping[str, Any]] = (),
    ) -> ToolResult:
        return cls(status, message=message, code=code, details=tuple(details))

    @property
    def is_error(self) -> bool:
        return self.status is not Status.OK

    def to_content(self) -> str:
        """What the model reads: text as it is, all else as JSON. An error is told even where there is a value beside it."""
        if self.is_error:
            told = {"error": self.message or self.status.replace("_", " "), "status": str(self.status)}
            if self.code:
                told["code"] = self.code
            return to_json({**told, "details": self.details} if self.details else told)
        return self.value if isinstance(self.value, str) else to_json(self.value)


@dataclass(frozen=True, slots=True)
class CallMessage:
    """What a tool says while it runs: how far it is (``fraction``, 0 to 1), or a line of its log."""

    call_id: str
    tool: str
    message: str
    fraction: float | None = None

    @classmethod
    def from_line(cls, line: bytes, *, call_id: str, tool: str) -> CallMessage:
        """From a line of :func:`unitools.runtime.progress` or ``log``."""
        said = json.loads(line)
        return cls(call_id, tool, said["log"] if "log" in said else said["message"], said.get("fraction"))


def to_json(value: Any) -> str:
    """JSON in which characters of all scripts stand as they are; models of pydantic and dataclasses as objects, the rest as text."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
