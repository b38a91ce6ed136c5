"""Schemas: how one is taken apart, so that a dialect that knows less of it can be told the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Schema = dict[str, Any]

ONE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"}
    | {"unevaluatedProperties", "contentSchema", "additionalItems"}
)  # keywords that hold a schema
MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "discriminator"}
)
TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_NUMBER = (int, float)
_SHAPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys((*MANY, "enum", "required", "examples"), list),
    **dict.fromkeys(NAMED, dict),
    **dict.fromkeys(ONE - {"items"}, (dict, bool)),
    **dict.fromkeys(("title", "description", "format", "pattern", "$ref"), str),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMBER),
    **dict.fromkeys((f"{way}{what}" for way in ("min", "max") for what in ("Items", "Length", "Properties")), _NUMBER),
    "type": (str, list),
}  # of the values that renderings look into
DEEPEST = 64
MOST = 20_000  # schemas within one that was inlined


class CannotSay(Exception):
    """A schema cannot be said in a dialect: where, and why."""

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer, self.reason = pointer, reason
        super().__init__(f"{pointer or 'the parameters'}: {reason}")


def extend_pointer(pointer: str, *tokens: str | int) -> str:
    """The JSON Pointer to something deeper."""
    return "".join([pointer, *(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in tokens)])


def map_subschemas(schema: Mapping[str, Any], change: Callable[[Any, str], Any], pointer: str = "") -> Schema:
    """A copy in which each schema directly within was changed; ``change(schema, pointer)``. What only looks like a schema (values of
    enum, const, default, properties called "items") stays."""
    copy: Schema = {}
    for key, value in schema.items():
        at = extend_pointer(pointer, key)
        if key in ONE and not isinstance(value, list):
            copy[key] = change(value, at)
        elif (key in MANY or key == "items") and isinstance(value, list):
            copy[key] = [change(each, extend_pointer(at, n)) for n, each in enumerate(value)]
        elif key in NAMED and isinstance(value, dict):
            copy[key] = {name: change(each, extend_pointer(at, name)) for name, each in value.items()}
        else:
            copy[key] = value
    return copy


def check_shape(schema: Any, pointer: str = "", depth: int = 0) -> None:
    """Raises CannotSay for what is no JSON Schema, as far as renderings rely on it, and for one that is nested too deep."""
    if depth > DEEPEST:
        raise CannotSay(pointer, f"it is nested deeper than {DEEPEST} levels")
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise CannotSay(pointer, "it is no JSON Schema")
    for key, value in schema.items():
        at, kind = extend_pointer(pointer, key), _SHAPES.get(key)
        if kind and not isinstance(value, kind):
            raise CannotSay(at, f"it is no JSON Schema: {key} has a value of another kind")
        if key == "type" and not (
            value and {str(each) for each in ([value] if isinstance(value, str) else value)} <= TYPES
        ):
            raise CannotSay(at, "it is no JSON Schema: there is no such type")
        if key == "required" and not all(isinstance(each, str) for each in value):
            raise CannotSay(at, "it is no JSON Schema: what is required are names")

    def check(each: Any, at: str) -> Any:
        check_shape(each, at, depth + 1)
        return each

    map_subschemas(schema, check, pointer)


def inline_references(
    root: Mapping[str, Any], cut: Callable[[str, str, str], tuple[Schema, str]] | None = None
) -> Schema:
    """The schema with every ``$ref`` replaced by what it refers to. Raises CannotSay for one that refers to itself or elsewhere.
    ``cut(reference, pointer, outer)``: what stands in place of one that refers to itself, and the words for it, of a dialect that has
    some; ``outer``: where what it refers to stands already."""
    count = 0

    def replaced(schema: Any, pointer: str, within: dict[str, str], depth: int) -> Any:
        nonlocal count
        count += 1
        if count > MOST:
            raise CannotSay(pointer, f"without $ref it would hold more than {MOST} schemas")
        if depth > DEEPEST:
            raise CannotSay(pointer, f"it is nested deeper than {DEEPEST} levels")
        if not isinstance(schema, dict):
            return schema
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            raise CannotSay(pointer, "it refers to a schema that is only known while validating")
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
        if "$ref" not in schema:
            return map_subschemas(beside, lambda each, at: replaced(each, at, within, depth + 1), pointer)
        ref = schema["$ref"]
        words: list[str] = []
        if ref not in within:
            target = replaced(resolve_reference(root, ref, pointer), pointer, {**within, ref: pointer}, depth + 1)
        elif cut is not None:
            target, *words = cut(ref, pointer, within[ref])
        else:
            raise CannotSay(pointer, f"it is recursive: {ref} refers to itself")
        said = map_subschemas(beside, lambda each, at: replaced(each, at, within, depth + 1), pointer)
        joined = _joined(target, said)
        return (
            extend_description(joined, *words) if words else joined
        )  # also where the place has a description of its own

    schema: Schema = replaced(dict(root), "", {"#": ""}, 0)
    return {key: value for key, value in schema.items() if key not in ("$schema", "$id", "discriminator")}


def resolve_reference(root: Mapping[str, Any], ref: object, pointer: str) -> Any:
    """What a reference into the same schema refers to."""
    if not isinstance(ref, str) or not ref.startswith("#/"):
        raise CannotSay(pointer, f"{ref!r} refers to outside the schema")
    found: Any = root
    for token in unquote(ref[2:]).split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise CannotSay(pointer, f"{ref} refers to nothing")
    return found


def _joined(target: Any, beside: Schema) -> Any:
    """Both hold. What the place says about itself wins over what is said of the type."""
    if not beside:
        return target
    if target is True:
        return beside
    if not isinstance(target, dict) or not set(beside) <= ANNOTATIONS:
        return {"allOf": [target], **beside}
    return {**target, **beside}


def extend_description(schema: Schema, *sentences: str) -> Schema:
    """With the sentences at the end of its description."""
    said = [schema["description"].rstrip()] if schema.get("description") else []
    return {**schema, "description": " ".join([*said, *sentences])} if sentences else schema


def format_value(value: Any) -> str:
    """As JSON in a sentence."""
    return json.dumps(value, ensure_ascii=False, default=str)


def list_types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types it names or, where it names none, those that its values or keywords tell; empty where any will do."""
    said = schema.get("type")
    if isinstance(said, str):
        return (said,)
    if isinstance(said, list):
        return tuple(said)
    if "const" in schema:
        return (get_type(schema["const"]),)
    if schema.get("enum"):
        return tuple(dict.fromkeys(get_type(value) for value in schema["enum"]))
    if "properties" in schema:
        return ("object",)
    return ("array",) if "items" in schema or "prefixItems" in schema else ()


def get_type(value: Any) -> str:
    """JSON's name for the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if float(value).is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def accepts_null(schema: Any) -> bool:
    """Whether it is plain that null will do."""
    if not isinstance(schema, dict):
        return schema is True
    if any(accepts_null(branch) for branch in schema.get("anyOf", ())):
        return "type" not in schema and "enum" not in schema and "const" not in schema
    return "null" in list_types(schema) and ("enum" not in schema or None in schema["enum"])


def remove_duplicates(values: Iterable[Any]) -> list[Any]:
    """Each value once, in order, told apart as JSON."""
    kept: dict[str, Any] = {}
    for value in values:
        kept.setdefault(json.dumps(value, sort_keys=True, default=str), value)
    return list(kept.values())
