"""LangChain: how tools are told to any of its chat models."""

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
    """A list for ``bind_tools``, in the form of OpenAI, which each of its models converts to its provider's. Strict only if asked
    for: not every provider behind it knows the word."""
    wanted = options if options.strict is True else options.without_strict()

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        parameters, strict = build_parameters(tool, wanted, notes)
        function: dict[str, Any] = {"name": name, "description": tool.description, "parameters": parameters}
        return {"type": "function", "function": {**function, "strict": True} if strict else function}

    return render_each("langchain", tools, options, say)
