"""OpenAI Chat Completions: how tools are told to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import inline_if_possible, render_each
from unitools.dialects.renderers.schema_composition import remove_choice
from unitools.dialects.schemas import CannotSay, Schema, extend_pointer, map_subschemas
from unitools.dialects.strict_schemas import OPENAI, make_strict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

LONG = 1024  # characters of a description
# What they describe counts as evaluated, too.
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "contains", "$ref"})


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """A list for ``tools=``."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        parameters, strict = build_parameters(tool, options, notes)
        function: dict[str, Any] = {"name": name, "description": tool.description, "parameters": parameters}
        return {"type": "function", "function": {**function, "strict": True} if strict else function}

    return render_each("openai", tools, options, say)


def build_parameters(tool: ToolSpec, options: RenderOptions, notes: Notes) -> tuple[Schema, bool]:
    """The schema, and whether the model is to be held to it."""
    if len(tool.description) > LONG:
        notes.info("", f"The description is longer than {LONG} characters: some servers of this dialect refuse it.")
    schema = inline_if_possible(tool.parameters, notes)
    if options.strict is True or (options.strict == "auto" and (options.profile is None or options.profile.strict)):
        try:
            return make_strict(schema, OPENAI, null_is_left_out=options.null_is_left_out), True
        except CannotSay as problem:
            if options.strict is True:
                raise CannotSay(problem.pointer, f"strict would lose something: {problem.reason}") from None
            notes.info(problem.pointer, f"Strict is off: {problem.reason}.")
    return _with_items(remove_choice(schema, notes, also=("not", "enum", "const")), "", notes), False


def _with_items(schema: Any, pointer: str, notes: Notes) -> Any:
    """An array whose items may be anything has to say so. What ``unevaluatedItems`` says of them becomes ``items``, for beside
    ``items`` it rules nothing out."""
    if not isinstance(schema, dict):
        return schema
    said = map_subschemas(schema, lambda each, at: _with_items(each, at, notes), pointer)
    combined = bool(_IN_PLACE & said.keys())
    types = said.get("type", ())
    if "array" in ([types] if isinstance(types, str) else types) and "items" not in said:
        said["items"] = {} if combined else said.pop("unevaluatedItems", {})
    if combined and "unevaluatedItems" in said and said != schema:
        notes.lossy(
            extend_pointer(pointer, "unevaluatedItems"),
            "The provider wants `items`, beside which this rules nothing out.",
        )
    return said
