"""Driver: what one must do for its dialect."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unitools.calls import ToolCall, ToolResult, ToolSpec
    from unitools.dialects.model_profiles import ModelProfile


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What of a tool a dialect cannot say. ``lossy``: the model sees less; ``skipped``: it does not see the tool; ``info``: the same
    is said otherwise."""

    tool: str  # its own name; empty where it is about the whole rendering
    pointer: str  # JSON Pointer into the tool's parameters; empty for the tool itself
    message: str
    severity: Literal["lossy", "skipped", "info"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """Tools as a provider's API takes them."""

    payload: Any  # a list of objects, or text (xml, markdown)
    dialect: str
    names: Mapping[str, str]  # name in the payload → tool name
    diagnostics: tuple[Diagnostic, ...] = ()
    key: bytes = field(default=b"", repr=False)  # of the XML nonce

    def reading(
        self, *, destructive: frozenset[str] = frozenset(), schemas: Mapping[str, Mapping[str, Any]] | None = None
    ) -> ReadOptions:
        """What a driver needs to read the answer to this rendering."""
        return ReadOptions(self.names, destructive, self.key, schemas or {})


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to render. ``strict``: where a dialect can hold the model to the schema, "auto" asks for it if nothing is lost by it, True
    makes it a condition of being rendered."""

    strict: Literal["auto"] | bool = "auto"
    on_unrenderable: Literal["error", "skip"] = "error"
    key: bytes = field(default=b"", repr=False)  # of the XML nonce; a new one if empty
    profile: ModelProfile | None = None  # of the model, where it is known; drivers then use what it can do
    # A strict schema may ask for null where something is left out. Whoever reads the answer has to know the schemas
    # (ReadOptions.schemas), so a listing for others to read does not say so.
    null_is_left_out: bool = False

    def without_strict(self) -> RenderOptions:
        return replace(self, strict=False)


AS_USUAL = RenderOptions()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a driver needs to read a response, even where nothing of the rendering was kept."""

    names: Mapping[str, str] = field(default_factory=dict)  # rendered → tool name, by tool_names.map_dialect_names
    destructive: frozenset[str] = frozenset()  # tools whose arguments are never repaired
    key: bytes = field(default=b"", repr=False)  # the XML nonce is random + HMAC(key, random): nonces.check_nonce
    # Tool name → schema of its arguments: what may be left out and is null is left out, and raw text is read as its type.
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Driver(Protocol):
    """One dialect, out and in."""

    dialect: ClassVar[str]

    def can_handle(self, profile: ModelProfile) -> int:
        """How well a model of this profile is served in this dialect, 0 (not at all) to 100."""

    def render(self, tools: Sequence[ToolSpec], options: RenderOptions = AS_USUAL) -> Rendered:
        """The tools in the order given. Raises NameCollision, and Unrenderable unless options say skip."""

    def detect(self, response: object) -> int:
        """How surely the response is of this dialect, 0 to 100, by its shape; no provider's SDK is imported."""

    def parse(self, response: object, reading: ReadOptions) -> list[ToolCall]:
        """The calls that the response proposes, in its order."""

    def reply(self, results: Sequence[ToolResult]) -> Any:
        """Messages in the dialect that answer the calls: one each, in order."""
