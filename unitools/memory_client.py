"""Memory client: tools of a Universe in the tests of their author, without a hub and without a box.

A call goes the way that it goes in a hub's sandbox: arguments and value as JSON, the same validation, layers and injection, ``config``
and ``secrets`` where a hub takes them from. What the tool says beside its value is in the answer::

    client = MemoryClient(u, config={"rate": "1.2"}, secrets={"BANK_KEY": "k"}, context={"db": FakeDb()})

    def test_a_quote_names_its_price_list():
        answer = client.call("get_quote", {"symbol": "ACME"})
        assert answer.data["price"] == "12.50"
        assert [each.fraction for each in answer.messages] == [0.5]

    def test_an_unknown_share_is_not_found():
        with pytest.raises(runtime.NotFound):
            client.call("get_quote", {"symbol": "NONE"})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from unitools import boxed, runtime
from unitools.calls import CallMessage
from unitools.dialects.tool_names import derive_tool_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.calls import ToolSpec
    from unitools.metadata import ToolMetadata
    from unitools.universe import Universe


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """What came of a call that succeeded. ``artifacts`` are (name, media type, content)."""

    data: Any  # JSON
    messages: tuple[CallMessage, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[dict[str, str], ...] = ()
    artifacts: tuple[tuple[str, str, bytes], ...] = ()
    ttl_seconds: int | None = None


class MemoryClient:
    """A client of the tools of one Universe.

    ``config`` and ``secrets``: what a tenant would have set. ``context``: what the tests put in the place of what the Universe
    provides. ``said``: further fields of :class:`unitools.runtime.Call`, as ``locale="de-DE"``.
    """

    def __init__(
        self,
        universe: Universe,
        *,
        config: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
        **said: Any,
    ) -> None:
        self._universe, self._context = universe, dict(context or {})
        self._said = {**said, "config": dict(config or {}), "secrets": dict(secrets or {})}

    def list_tools(self) -> list[ToolSpec]:
        """As models see them."""
        return self._universe.tools.specs

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> MemoryAnswer:
        """Call a tool by its name, or by that which models know it by.

        Raises what the tool raised, as it was; for arguments that are not valid :class:`unitools.runtime.InvalidArgument`, for a
        result other than declared :class:`unitools.runtime.ResultInvalid`, for a decision of a layer the refusal that a hub makes of
        it; LookupError where there is no such tool. Where a loop runs already, await :meth:`acall`.
        """
        return anyio.run(self.acall, name, arguments)

    async def acall(self, name: str, arguments: Mapping[str, Any] | None = None) -> MemoryAnswer:
        tool = self._find(name)
        messages: list[CallMessage] = []

        def tell(line: bytes) -> None:
            messages.append(CallMessage.from_line(line, call_id=call.call_id, tool=tool.name))

        call = runtime.Call(**{"tool_id": tool.id, **self._said})
        with runtime.running(call, progress=tell) as report:
            data = await boxed.answer(self._universe, tool.name, arguments or {}, self._context)
        return MemoryAnswer(
            data,
            tuple(messages),
            tuple(report.warnings),
            tuple(each.to_json() for each in report.sources),
            tuple(report.artifacts),
            report.ttl_seconds,
        )

    def _find(self, name: str) -> ToolMetadata:
        for tool in self._universe.tools:
            if name in (tool.name, derive_tool_name(tool.name), tool.id):
                return tool
        raise LookupError(f"There is no tool {name}; there are {', '.join(self._universe.tools.names) or 'none'}.")
