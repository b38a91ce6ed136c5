"""Anthropic Messages: how tools are told to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import enforce_names, inline_if_possible, render_each
from unitools.dialects.renderers.schema_composition import remove_choice
from unitools.dialects.schemas import CannotSay, extend_pointer
from unitools.dialects.strict_schemas import ANTHROPIC, make_strict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for ``tools=``. Strict only if asked for: all strict tools are compiled to one grammar, and one too many fails the whole
    request."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        schema = inline_if_possible(tool.parameters, notes)
        said: dict[str, Any] = {"name": name, "description": tool.description}
        if options.strict is True:
            strange = next((each for each in schema["properties"] if not _PROPERTY.fullmatch(each)), None)
            if strange is not None:
                raise CannotSay(
                    extend_pointer("", "properties", strange), "strict would lose something: the name is refused"
                )
            try:
                said |= {"input_schema": make_strict(schema, ANTHROPIC), "strict": True}
            except CannotSay as problem:
                raise CannotSay(problem.pointer, f"strict would lose something: {problem.reason}") from None
            return said
        return {**said, "input_schema": enforce_names(_PROPERTY, remove_choice(schema, notes), notes)}

    return render_each("anthropic", tools, options, say)
