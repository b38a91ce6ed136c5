"""Toolsets: the tools that a model is shown, and how."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

from unitools.dialects import RenderOptions, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects import Driver, Rendered
    from unitools.metadata import ToolMetadata


class ToolSet:
    """Tools of one Universe, in the order in which they were registered. It does not change; ``|``, ``&`` and ``-`` make others."""

    __slots__ = ("_drivers", "_key", "_tools", "_version")

    def __init__(
        self, tools: Iterable[ToolMetadata], drivers: Sequence[Driver], *, key: bytes = b"", version: str = ""
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._drivers, self._key, self._version = tuple(drivers), key, version

    def __iter__(self) -> Iterator[ToolMetadata]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, tool: object) -> bool:
        """A tool, or its name."""
        return tool in self._tools or tool in self._tools.values()

    def __getitem__(self, name: str) -> ToolMetadata:
        return self._tools[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolSet) and set(self) == set(other)

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"<ToolSet of {', '.join(self._tools) or 'nothing'}>"

    def __or__(self, other: ToolSet) -> ToolSet:
        return self._with([*self, *(tool for tool in other if tool not in self)])

    def __and__(self, other: ToolSet) -> ToolSet:
        return self._with(tool for tool in self if tool in other)

    def __sub__(self, other: ToolSet) -> ToolSet:
        return self._with(tool for tool in self if tool not in other)

    def _with(self, tools: Iterable[ToolMetadata]) -> ToolSet:
        return ToolSet(tools, self._drivers, key=self._key, version=self._version)

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    @property
    def specs(self) -> list[ToolSpec]:
        """All that models see of them."""
        return [tool.spec for tool in self]

    def render(
        self,
        model: str,
        *,
        strict: Literal["auto"] | bool = "auto",
        on_unrenderable: Literal["error", "skip"] = "error",
    ) -> Rendered:
        """For a model, as "gpt-4o", or in a dialect, as "anthropic".

        Raises UnknownDialect, AmbiguousModel, NameCollision, and Unrenderable unless such a tool is to be left out.
        """
        options = RenderOptions(strict, on_unrenderable, self._key, null_is_left_out=True)
        return render(self.specs, model, options, self._drivers)

    def to_markdown(self) -> str:
        """For people, and for models that only read."""
        return str(self.render("markdown").payload)

    def manifest(self) -> list[dict[str, Any]]:
        """What a hub is told of each. Raises ValueError with what no hub takes, and for a Universe without a name."""
        publishing = importlib.import_module("unitools.publisher")  # only authors publish
        found: list[dict[str, Any]] = publishing.build_manifests(list(self), version=self._version)
        return found
