"""Gemini subset: schemas in Google's own subset of OpenAPI 3.0, as JSON Schemas.

Types are upper-case words there, null is a flag, and the order of properties stands beside them. What it has no word for is refused
by name, since a schema that says less than its caller thinks would be held for one that says it.
"""

from __future__ import annotations

from typing import Any

from kernel.problems import SchemaInvalid
from llm.served.parameters import UNKNOWN, escape

MAX_DEPTH = 60
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
UNSPECIFIED = "TYPE_UNSPECIFIED"
SAME = {"title", "description", "pattern", "required", "enum", "default", "minimum", "maximum", "format"}
# Whole numbers that JSON of Google's writes as texts.
COUNTS = {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
NAMES = {
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "any_of": "anyOf",
    "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties",
}
# Formats that say how many bits a number has, or that a text is one of several.
OF_WIDTH = {"enum", "int32", "int64", "float", "double"}

Schema = dict[str, Any]


def read_subset(schema: Any, pointer: str, depth: int = 0) -> Schema:
    """The JSON Schema. Raises SchemaInvalid with the place of the first mistake."""
    if not isinstance(schema, dict):
        raise SchemaInvalid.at(pointer, "A schema is an object.")
    if depth > MAX_DEPTH:
        raise SchemaInvalid.at(pointer, f"Schemas are at most {MAX_DEPTH} deep.")
    read: Schema = {}
    given: dict[str, tuple[str, Any]] = {
        NAMES.get(str(name), str(name)): (str(name), value) for name, value in schema.items() if value is not None
    }
    nullable = given.pop("nullable", ("", False))[1] is True
    order = given.pop("propertyOrdering", ("", []))[1]
    for name, (written, value) in given.items():
        read |= _read_keyword(name, value, f"{pointer}/{escape(written)}", depth)
    if isinstance(order, list) and "properties" in read:
        said = read["properties"]
        first = [name for name in order if isinstance(name, str) and name in said]
        read["properties"] = {name: said[name] for name in dict.fromkeys([*first, *said])}
    return _allow_null(read) if nullable else read


def _read_keyword(name: str, value: Any, pointer: str, depth: int) -> Schema:
    match name:
        case "type":
            return _read_type(value, pointer)
        case "format" if value in OF_WIDTH:
            return {}
        case "properties" | "defs" if isinstance(value, dict):
            said = {each: read_subset(inner, f"{pointer}/{escape(each)}", depth + 1) for each, inner in value.items()}
            return {"$defs" if name == "defs" else name: said}
        case "items":
            return {name: read_subset(value, pointer, depth + 1)}
        case "anyOf" if isinstance(value, list):
            return {name: [read_subset(each, f"{pointer}/{at}", depth + 1) for at, each in enumerate(value)]}
        case "additionalProperties":
            return {name: value if isinstance(value, bool) else read_subset(value, pointer, depth + 1)}
        case "example":
            return {"examples": [value]}
        case "ref":
            return {"$ref": value.replace("#/defs/", "#/$defs/") if isinstance(value, str) else value}
    if name in COUNTS:
        return {name: int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value}
    if name in SAME:
        return {name: value}
    raise SchemaInvalid.at(pointer, UNKNOWN.replace("parameter", "field of a schema"))


def _read_type(value: Any, pointer: str) -> Schema:
    kind = value.upper() if isinstance(value, str) else ""
    if kind == UNSPECIFIED:
        return {}
    if kind not in TYPES:
        raise SchemaInvalid.at(pointer, f"This is one of {', '.join(sorted(TYPES))}.")
    return {"type": kind.lower()}


def _allow_null(schema: Schema) -> Schema:
    """The same, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    allowed = schema | {"type": [schema["type"], "null"]}
    return allowed | {"enum": [*allowed["enum"], None]} if isinstance(allowed.get("enum"), list) else allowed
