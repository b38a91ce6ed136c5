"""What do all renderings of tools one by one share?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.dialects.base import Diagnostic, Rendered
from unitools.dialects.errors import Unrenderable
from unitools.dialects.naming import name_in, names_of
from unitools.dialects.schemas import CannotSay, Schema, check_shape, described, inlined, shown, step

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Options


@dataclass(slots=True)
class Notes:
    """What a rendering finds out about one tool."""

    tool: str
    found: list[Diagnostic] = field(default_factory=list)

    def lossy(self, pointer: str, message: str) -> None:
        self.found.append(Diagnostic(self.tool, pointer, message, "lossy"))

    def info(self, pointer: str, message: str) -> None:
        self.found.append(Diagnostic(self.tool, pointer, message, "info"))


def render_each(
    dialect: str, tools: Sequence[ToolSpec], options: Options, say: Callable[[ToolSpec, str, Notes], Any]
) -> Rendered:
    """What ``say(tool, name in the dialect, notes)`` makes of each, in order. It raises CannotSay for a tool that has no rendering;
    that is an error or skips the tool, as the options say."""
    names = names_of(dialect, [tool.name for tool in tools], on_collision=options.on_unrenderable)
    kept: dict[str, str] = {}
    payload: list[Any] = []
    diagnostics: list[Diagnostic] = []
    for tool in tools:
        name = name_in(dialect, tool.name)
        if name not in names:
            diagnostics.append(_skipped(tool, "", f"another tool would be called {name!r} too"))
            continue
        notes = Notes(tool.name)
        try:
            check_shape(tool.parameters)
            payload.append(say(tool, name, notes))
        except CannotSay as problem:
            if options.on_unrenderable == "error":
                raise Unrenderable(dialect, tool.name, problem.pointer, problem.reason) from None
            diagnostics.append(_skipped(tool, problem.pointer, problem.reason))
            continue
        kept[name] = tool.name
        diagnostics += notes.found
    return Rendered(payload, dialect, kept, tuple(diagnostics))


def _skipped(tool: ToolSpec, pointer: str, reason: str) -> Diagnostic:
    return Diagnostic(tool.name, pointer, reason, "skipped")


def inlined_if_possible(parameters: Mapping[str, Any], notes: Notes) -> Schema:
    """Without references where that can be; else as it is, for dialects that know them."""
    try:
        return as_object(inlined(parameters))
    except CannotSay as problem:
        notes.info(problem.pointer, f"References stay: {problem.reason}.")
        return as_object({key: value for key, value in parameters.items() if key not in ("$schema", "$id")})


def with_names_like(pattern: re.Pattern[str], schema: Schema, notes: Notes) -> Schema:
    """Other names of parameters fail the whole request, so those are only said in words; the model can still write them."""
    refused = [name for name in schema["properties"] if not pattern.fullmatch(name)]
    if not refused:
        return schema
    required = schema.get("required", ())
    words = []
    for name in refused:
        words.append(
            f"Another {'required' if name in required else 'optional'} property, {shown(name)}: {shown(schema['properties'][name])}."
        )
        notes.lossy(
            step("", "properties", name), "The provider refuses this name; the parameter is only said in words."
        )
    said = {key: value for key, value in schema.items() if key != "additionalProperties"}
    said["properties"] = {name: each for name, each in schema["properties"].items() if name not in refused}
    if required:
        said["required"] = [name for name in required if name not in refused]
    return described(said, *words)


def as_object(schema: Schema) -> Schema:
    """Parameters are the properties of one object; a schema that says nothing takes none."""
    said = schema.get("type", "object")
    if said != "object" and said != ["object"]:
        raise CannotSay("/type", "a tool takes one object")
    return {**schema, "type": "object", "properties": dict(schema.get("properties", {}))}
