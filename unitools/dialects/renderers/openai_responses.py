"""OpenAI Responses: how tools are told to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import render_each
from unitools.dialects.renderers.openai import build_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for ``tools=``. Strict is said each time: left out, the API would try it by itself."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        parameters, strict = build_parameters(tool, options, notes)
        return {
            "type": "function",
            "name": name,
            "description": tool.description,
            "parameters": parameters,
            "strict": strict,
        }

    return render_each("openai-responses", tools, options, say)
