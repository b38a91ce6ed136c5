"""How are tools told to Anthropic Messages?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.dialects.rendering.choices import without_choice
from unitools.dialects.rendering.each import inlined_if_possible, render_each, with_names_like
from unitools.dialects.schemas import CannotSay, step
from unitools.dialects.strict import ANTHROPIC, strictly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Options, Rendered
    from unitools.dialects.rendering.each import Notes

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def render(tools: Sequence[ToolSpec], options: Options) -> Rendered:
    """A list for ``tools=``. Strict only if asked for: all strict tools are compiled to one grammar, and one too many fails the whole
    request."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        schema = inlined_if_possible(tool.parameters, notes)
        said: dict[str, Any] = {"name": name, "description": tool.description}
        if options.strict is True:
            strange = next((each for each in schema["properties"] if not _PROPERTY.fullmatch(each)), None)
            if strange is not None:
                raise CannotSay(step("", "properties", strange), "strict would lose something: the name is refused")
            try:
                said |= {"input_schema": strictly(schema, ANTHROPIC), "strict": True}
            except CannotSay as problem:
                raise CannotSay(problem.pointer, f"strict would lose something: {problem.reason}") from None
            return said
        return {**said, "input_schema": with_names_like(_PROPERTY, without_choice(schema, notes), notes)}

    return render_each("anthropic", tools, options, say)
