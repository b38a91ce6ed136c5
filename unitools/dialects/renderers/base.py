"""Renderer: what all renderings of tools one by one share."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.dialects.base import Diagnostic, Rendered
from unitools.dialects.errors import Unrenderable
from unitools.dialects.schemas import (
    CannotSay,
    Schema,
    check_shape,
    extend_description,
    extend_pointer,
    format_value,
    inline_references,
)
from unitools.dialects.tool_names import derive_dialect_name, map_dialect_names

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import RenderOptions

logger = logging.getLogger("unitools")


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
    dialect: str, tools: Sequence[ToolSpec], options: RenderOptions, say: Callable[[ToolSpec, str, Notes], Any]
) -> Rendered:
    """What ``say(tool, name in the dialect, notes)`` makes of each, in order. It raises CannotSay for a tool that has no rendering;
    that is an error or skips the tool, as the options say."""
    names = map_dialect_names(dialect, [tool.name for tool in tools], on_collision=options.on_unrenderable)
    kept: dict[str, str] = {}
    payload: list[Any] = []
    diagnostics: list[Diagnostic] = []
    for tool in tools:
        name = derive_dialect_name(dialect, tool.name)
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
        except Exception as error:
            if options.on_unrenderable == "error":
                raise
            logger.exception("%s cannot be told in %s.", tool.name, dialect)  # the others are
            diagnostics.append(_skipped(tool, "", f"telling it failed: {type(error).__name__}"))
            continue
        kept[name] = tool.name
        diagnostics += notes.found
    return Rendered(payload, dialect, kept, tuple(diagnostics))


def _skipped(tool: ToolSpec, pointer: str, reason: str) -> Diagnostic:
    return Diagnostic(tool.name, pointer, reason, "skipped")


def inline_if_possible(parameters: Mapping[str, Any], notes: Notes) -> Schema:
    """Without references where that can be; else as it is, for dialects that know them."""
    try:
        return as_object(inline_references(parameters))
    except CannotSay as problem:
        notes.info(problem.pointer, f"References stay: {problem.reason}.")
        return as_object({key: value for key, value in parameters.items() if key not in ("$schema", "$id")})


def enforce_names(pattern: re.Pattern[str], schema: Schema, notes: Notes) -> Schema:
    """Other names of parameters fail the whole request, so those are only said in words; the model can still write them."""
    refused = [name for name in schema["properties"] if not pattern.fullmatch(name)]
    if not refused:
        return schema
    required = schema.get("required", ())
    words = []
    for name in refused:
        need = "required" if name in required else "optional"
        words.append(f"Another {need} property, {format_value(name)}: {format_value(schema['properties'][name])}.")
        notes.lossy(
            extend_pointer("", "properties", name),
            "The provider refuses this name; the parameter is only said in words.",
        )
    said = {key: value for key, value in schema.items() if key != "additionalProperties"}
    said["properties"] = {name: each for name, each in schema["properties"].items() if name not in refused}
    if required:
        said["required"] = [name for name in required if name not in refused]
    return extend_description(said, *words)


def as_object(schema: Schema) -> Schema:
    """Parameters are the properties of one object; a schema that says nothing takes none."""
    said = schema.get("type", "object")
    if said != "object" and said != ["object"]:
        raise CannotSay("/type", "a tool takes one object")
    return {**schema, "type": "object", "properties": dict(schema.get("properties", {}))}
