"""MCP: how tools are told to a client of the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import as_object, render_each
from unitools.dialects.schemas import map_subschemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

RESULT = "result"  # under which a result that is no object is told


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for the ``tools`` of tools/list. JSON Schema 2020-12 is this dialect's own, so schemas stay as they are."""

    def say(tool: ToolSpec, name: str, _notes: Notes) -> dict[str, Any]:
        said: dict[str, Any] = {"name": name}
        if tool.title:
            said["title"] = tool.title
        said |= {"description": tool.description, "inputSchema": as_object(dict(tool.parameters))}
        if tool.output_schema is not None:
            said["outputSchema"] = build_output_schema(tool.output_schema)
        hints = tool.annotations
        said["annotations"] = {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        }
        return said

    return render_each("mcp", tools, options, say)


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whether results of the schema are objects, told as they are. All others are told under RESULT."""
    return schema.get("type") == "object"


def build_output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of structuredContent, which is an object: the result itself, or ``{"result": …}``."""
    if is_object(schema):
        return dict(schema)
    definitions = {key: value for key, value in schema.items() if key in ("$schema", "$defs", "definitions")}
    inner = {key: value for key, value in schema.items() if key not in definitions}
    return {**definitions, "type": "object", "properties": {RESULT: _moved(inner, "")}, "required": [RESULT]}


def build_structured_content(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The structuredContent of a result of that schema."""
    return value if is_object(schema) else {RESULT: value}


def _moved(schema: Any, pointer: str) -> Any:
    """References to the root follow it to where it stands now; those to definitions stay true."""
    if not isinstance(schema, dict):
        return schema
    said = map_subschemas(schema, _moved, pointer)
    ref = said.get("$ref")
    if (
        isinstance(ref, str)
        and (ref == "#" or ref.startswith("#/"))
        and not ref.startswith(("#/$defs/", "#/definitions/"))
    ):
        said["$ref"] = f"#/properties/{RESULT}{ref[1:]}"
    return said
