"""Gemini: how tools are told to it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import as_object, enforce_names, inline_if_possible, render_each
from unitools.dialects.renderers.gemini_schema import Subset
from unitools.dialects.renderers.recursions import Recursions
from unitools.dialects.schemas import extend_description, inline_references

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for ``tools``: one object with all function declarations; empty where there are none. Parameters go as JSON Schema to
    models that are known to take it, to all others in Gemini's own subset."""
    knows_json_schema = options.profile is not None and options.profile.json_schema

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        said: dict[str, Any] = {"name": name, "description": tool.description}
        if knows_json_schema:
            schema = inline_if_possible(tool.parameters, notes)
            open_ended = schema["properties"] or schema.get("additionalProperties", False) is not False
            return {**said, "parametersJsonSchema": schema} if open_ended else said
        inlined = inline_references(tool.parameters, Recursions(tool.parameters, notes).cut)
        parameters = enforce_names(_PARAMETER, Subset(notes).root(as_object(inlined)), notes)
        if parameters["properties"]:
            return {**said, "parameters": parameters}
        # An object without a property is refused, so what it says stands in the function's description.
        return extend_description(said, *filter(None, [parameters.get("description")]))

    rendered = render_each("gemini", tools, options, say)
    return replace(rendered, payload=[{"functionDeclarations": rendered.payload}]) if rendered.payload else rendered
