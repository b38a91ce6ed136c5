"""Bedrock Converse: how tools are told to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import enforce_names, inline_if_possible, render_each
from unitools.dialects.renderers.schema_composition import remove_choice
from unitools.dialects.schemas import CannotSay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # as the strictest of the models behind it


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for ``toolConfig={"tools": …}``. The API holds no model to a schema. It refuses an empty description, and an empty list:
    without tools there is no ``toolConfig``."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        if options.strict is True:
            raise CannotSay("", "Bedrock Converse holds no model to a schema, so strict cannot be had")
        schema = enforce_names(_PROPERTY, remove_choice(inline_if_possible(tool.parameters, notes), notes), notes)
        described = {"description": tool.description} if tool.description else {}
        return {"toolSpec": {"name": name, **described, "inputSchema": {"json": schema}}}

    return render_each("bedrock", tools, options, say)
