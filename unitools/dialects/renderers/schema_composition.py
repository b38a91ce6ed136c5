"""Schema composition: what is said where a provider takes no choice among objects as a tool's parameters.

Its properties stand side by side, so the model can still write each of the objects. That it has to be one of them is said in words;
the arguments are checked against the original in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.schemas import Schema, extend_description, format_value

if TYPE_CHECKING:
    from unitools.dialects.renderers.base import Notes

_WORDS = {"allOf": "All of these hold", "anyOf": "At least one of these holds", "oneOf": "Exactly one of these holds"}


def remove_choice(schema: Schema, notes: Notes, *, also: tuple[str, ...] = ()) -> Schema:
    """An object's schema without anyOf, oneOf and allOf at its root, nor the keywords of ``also``."""
    said = schema
    for key, words in _WORDS.items():
        if key in said:
            branches = [each for each in said[key] if isinstance(each, dict)]
            said = _beside(
                {name: value for name, value in said.items() if name != key}, branches, together=key == "allOf"
            )
            said = extend_description(said, f"{words}: {format_value(schema[key])}.")
            notes.lossy(f"/{key}", f"{key} at the root is only said in words.")
    for key in also:
        if key in said:
            said = extend_description(
                {name: value for name, value in said.items() if name != key}, f"{key}: {format_value(said[key])}."
            )
            notes.lossy(f"/{key}", f"{key} at the root is only said in words.")
    return said


def _beside(schema: Schema, branches: list[dict[str, Any]], *, together: bool) -> Schema:
    """With the properties of all branches; required is what all of them require, or each of them if they hold together. An object
    that was closed by one branch stays open, for the others add to it."""
    properties = dict(schema.get("properties", {}))
    for branch in branches:
        for name, each in branch.get("properties", {}).items():
            if name in properties and properties[name] != each:
                known = properties[name].get("anyOf", [properties[name]]) if isinstance(properties[name], dict) else []
                properties[name] = each if not known or each is True else {"anyOf": [*known, each]}
            else:
                properties[name] = each
    sets = [set(branch.get("required", ())) for branch in branches]
    demanded = (set.union(*sets) if together else set.intersection(*sets)) if sets else set()
    required = [*schema.get("required", ()), *(name for name in properties if name in demanded)]
    if any("properties" in branch for branch in branches) and schema.get("additionalProperties") is False:
        schema = {key: value for key, value in schema.items() if key != "additionalProperties"}
    schema = {**schema, "properties": properties}
    return {**schema, "required": list(dict.fromkeys(required))} if required else schema
