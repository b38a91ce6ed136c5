"""Left out: what a model wrote as null because a strict schema has no other word for it.

A provider that is asked to be strict makes the model write every property. For one that may be left out and takes no null, null then
stands for leaving it out (:mod:`unitools.dialects.strict_schemas`), and here it is taken away again. Nothing else is touched: where
null is a value of the property it stays, and where it is none and the property is required, the tool refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.schemas import CannotSay, get_type, resolve_reference

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEEPEST = 64


def drop_left_out(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without each null that can only mean that a property was left out."""
    found: dict[str, Any] = _drop(arguments, schema, schema, 0)
    return found


def _drop(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    said = _resolve(schema, root)
    if depth > _DEEPEST or not isinstance(said, dict) or not isinstance(value, (dict, list)):
        return value
    if "anyOf" in said:
        branch = find_branch(said, root, get_type(value))
        return value if branch is None else _drop(value, branch, root, depth + 1)
    if isinstance(value, list):
        items = said.get("items")
        return [_drop(each, items, root, depth + 1) for each in value] if isinstance(items, dict) else value
    properties, required = said.get("properties", {}), said.get("required", ())
    return {
        name: _drop(each, properties.get(name), root, depth + 1)
        for name, each in value.items()
        if not (each is None and name in properties and name not in required and refuses_null(properties[name], root))
    }


def find_branch(schema: Mapping[str, Any], root: Mapping[str, Any], kind: str = "object") -> Any:
    """The one branch of ``anyOf`` that a value of the type (JSON's name) can be of; None where several or none are."""
    possible = [each for each in schema["anyOf"] if _may_be(each, kind, root)]
    return possible[0] if len(possible) == 1 else None


def refuses_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether it is plain that null will not do."""
    return isinstance(schema, dict) and not _may_be(schema, "null", root)


def _may_be(schema: Any, kind: str, root: Mapping[str, Any], depth: int = 0) -> bool:
    said = _resolve(schema, root)
    if not isinstance(said, dict):
        return said is not False
    if depth > _DEEPEST:
        return True
    if "anyOf" in said and not any(_may_be(each, kind, root, depth + 1) for each in said["anyOf"]):
        return False
    if "enum" in said:
        return any(get_type(each) == kind for each in said["enum"])
    if "const" in said:
        return get_type(said["const"]) == kind
    types = said.get("type")
    if types is None:  # other keywords hold for values of their own type only, so any will do
        return True
    named = (types,) if isinstance(types, str) else tuple(types)
    return kind in named or (kind == "integer" and "number" in named)


def _resolve(schema: Any, root: Mapping[str, Any]) -> Any:
    """What a reference refers to, if it stands alone."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        try:
            schema = root if schema["$ref"] == "#" else resolve_reference(root, schema["$ref"], "")
        except CannotSay:
            return True
    return True
