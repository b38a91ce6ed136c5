"""Gemini schema: what of a JSON Schema Gemini's own subset says.

The subset has no references, no type arrays, no ``const``, ``oneOf``, ``allOf`` or exclusive bounds, enums of text only, and ``anyOf``
must stand alone. What it cannot say goes into the description, and a diagnostic tells so. What the original accepts stays accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.schema_composition import remove_choice
from unitools.dialects.schemas import (
    ANNOTATIONS,
    CannotSay,
    Schema,
    extend_description,
    extend_pointer,
    format_value,
    list_types,
    remove_duplicates,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.dialects.renderers.base import Notes

# Keywords by the type that they are about. Those of the first line are said as they are.
_STRING = {"minLength", "maxLength"} | {"pattern", "format", "enum"}
_NUMBER = {"minimum", "maximum"} | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format", "enum"}
_ARRAY = {"minItems", "maxItems"} | {
    "items",
    "prefixItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
}
_OBJECT = {"minProperties", "maxProperties"} | {
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
}
_OBJECT |= {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
_BY_TYPE = {
    "string": _STRING,
    "number": _NUMBER,
    "integer": _NUMBER,
    "array": _ARRAY,
    "object": _OBJECT,
    "boolean": {"enum"},
}
_OF_ANY_TYPE = frozenset().union(*_BY_TYPE.values())
_AS_THEY_ARE = {
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
}
_SAID_ELSEWHERE = ANNOTATIONS | {"type", "anyOf", "oneOf", "allOf", "const", "$schema", "$id", "nullable"}
_FORMATS = {"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
_ANY = ("string", "number", "boolean")


class Subset:
    """Says schemas in the subset; ``notes`` collects what was lost."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def root(self, schema: Schema) -> Schema:
        """Of the parameters: one object."""
        said = self.schema(remove_choice(schema, self.notes), "")
        return {**said, "properties": said.get("properties", {})}

    def schema(self, schema: Any, pointer: str) -> Schema:
        if not isinstance(schema, dict):
            schema = {}
        schema = self.merged(schema, pointer)
        if "const" in schema:
            schema = {**{key: value for key, value in schema.items() if key != "const"}, "enum": [schema["const"]]}
        choice = next((key for key in ("anyOf", "oneOf") if key in schema), None)
        if choice and set(schema) <= ANNOTATIONS | {"type", choice}:
            return self.choice(schema, choice, pointer)
        types = list_types(schema)
        if not types:
            self.notes.lossy(pointer, "Any value will do, which is told as text, a number, or true or false.")
        elif "type" not in schema and "enum" not in schema:
            self.notes.info(pointer, f"No type is named; taken for {types[0]}.")
        return self.one_of_types(schema, types or _ANY, pointer)

    def choice(self, schema: Schema, key: str, pointer: str) -> Schema:
        """A choice and nothing beside it but words, which go to each branch."""
        if key == "oneOf":
            self.notes.lossy(extend_pointer(pointer, key), "That only one may hold is not said.")
        branches = [each for each in schema[key] if each is not False]
        kept = [
            (n, each)
            for n, each in enumerate(branches)
            if not (isinstance(each, dict) and list_types(each) == ("null",))
        ]
        said = [self.schema(each, extend_pointer(pointer, key, n)) for n, each in kept]
        return self.alone(said, schema, pointer, nullable=len(kept) < len(branches))

    def one_of_types(self, schema: Schema, types: Sequence[str], pointer: str) -> Schema:
        if "number" in types:
            types = [each for each in types if each != "integer"]
        said = [self.single(schema, each, pointer) for each in types if each != "null"]
        nullable = "null" in types and ("enum" not in schema or None in schema["enum"])
        return self.alone(said, schema, pointer, nullable=nullable)

    def alone(self, said: list[Schema], schema: Schema, pointer: str, *, nullable: bool) -> Schema:
        """One schema of the subset for all of these."""
        flat = remove_duplicates(each for branch in said for each in branch.get("anyOf", [branch]))
        words = [] if not schema.get("description") else [schema["description"]]
        words += [f"Default: {format_value(schema['default'])}."] if "default" in schema else []
        words += (
            [f"Examples: {', '.join(format_value(each) for each in schema['examples'])}."]
            if schema.get("examples")
            else []
        )
        words += ["Deprecated."] if schema.get("deprecated") else []
        flat = [
            {**each, "description": " ".join([*words, each["description"]] if "description" in each else words)}
            if words
            else each
            for each in flat or [{"type": "NULL"}]
        ]
        if nullable:
            flat = [{**each, "nullable": True} for each in flat]
        return flat[0] if len(flat) == 1 else {"anyOf": flat}

    def single(self, schema: Schema, kind: str, pointer: str) -> Schema:
        said: Schema = {"type": kind.upper()}
        words: list[str] = []
        about = _BY_TYPE.get(kind, set())
        for key, value in schema.items():
            if key in _AS_THEY_ARE & about:
                said[key] = value
            elif key in about and self.add_keyword(said, key, value, kind, pointer):
                pass
            elif key in about or key not in (_OF_ANY_TYPE | _SAID_ELSEWHERE) or key in ("anyOf", "oneOf"):
                words.append(
                    f"One of {', '.join(map(format_value, value))}."
                    if key == "enum"
                    else f"{key}: {format_value(value)}."
                )
                self.notes.lossy(extend_pointer(pointer, key), f"{key} is only said in words.")
        if kind == "array":
            said["items"] = self.items(schema, words, pointer)
        if "required" in said:
            said["required"] = [name for name in said["required"] if name in said.get("properties", {})]
        return extend_description(said, *words)

    def add_keyword(self, said: Schema, key: str, value: Any, kind: str, pointer: str) -> bool:
        """Whether the subset has words for it, which then stand in ``said``."""
        if key == "properties":
            if value:
                at = extend_pointer(pointer, key)
                said[key] = {
                    name: self.schema(each, extend_pointer(at, name))
                    for name, each in value.items()
                    if each is not False
                }
        elif key == "required":
            if value:
                said[key] = list(value)
        elif key == "additionalProperties" and value in (True, False):
            if value is False:
                self.notes.info(extend_pointer(pointer, key), "That there are no further properties is not said.")
        elif key == "enum":
            return self.values(said, value, kind)
        elif key == "format":
            if value not in _FORMATS.get(kind, ()):
                return False
            said[key] = value
        elif key == "pattern":
            if "(?" in value.replace("(?:", ""):
                return False  # looks around
            said[key] = value
        elif key in ("exclusiveMinimum", "exclusiveMaximum") and kind == "integer" and type(value) is int:
            bound, low = ("minimum", True) if key == "exclusiveMinimum" else ("maximum", False)
            new = value + 1 if low else value - 1
            said[bound] = new if bound not in said else (max if low else min)(said[bound], new)
        elif key == "uniqueItems" and value is False:
            pass
        else:
            return key in ("items", "prefixItems")  # which `items` says
        return True

    def values(self, said: Schema, values: list[Any], kind: str) -> bool:
        """Values of an enum, if all are text that is not empty."""
        if kind == "boolean" and {True, False} <= {each for each in values if isinstance(each, bool)}:
            return True
        texts = [each for each in values if isinstance(each, str)]
        if kind != "string" or not texts or "" in texts:
            return False
        said["enum"] = texts
        return True

    def items(self, schema: Schema, words: list[str], pointer: str) -> Schema:
        """Arrays have to say what is in them."""
        first = schema["items"] if isinstance(schema.get("items"), list) else schema.get("prefixItems")
        rest = schema.get("items") if not isinstance(schema.get("items"), list) else schema.get("additionalItems", True)
        if first is None:
            return self.schema(rest, extend_pointer(pointer, "items"))
        words.append(f"Items in order: {format_value(first)}.")
        self.notes.lossy(extend_pointer(pointer, "prefixItems"), "The order of items is only said in words.")
        more = schema.get("maxItems", len(first) + 1) > len(first) and rest is not False
        branches = [*first, *([{} if rest is None else rest] if more else [])]
        return self.schema({"anyOf": branches}, extend_pointer(pointer, "items"))

    def merged(self, schema: Schema, pointer: str) -> Schema:
        """Without allOf."""
        if "allOf" not in schema:
            return schema
        said = {key: value for key, value in schema.items() if key != "allOf"}
        for n, branch in enumerate(schema["allOf"]):
            if isinstance(branch, dict):
                at = extend_pointer(pointer, "allOf", n)
                for key, value in self.merged(branch, at).items():
                    self.merge(said, key, value, at)
        return said

    def merge(self, said: Schema, key: str, value: Any, pointer: str) -> None:
        """Into ``said``, with which it holds together."""
        if key not in said or said[key] == value:
            said[key] = value
        elif key == "properties":
            both = {name: {"allOf": [said[key][name], each]} for name, each in value.items() if name in said[key]}
            said[key] = {**said[key], **value, **both}
        elif key == "required":
            said[key] = remove_duplicates([*said[key], *value])
        elif key.startswith("min") or key == "exclusiveMinimum":
            said[key] = max(said[key], value)
        elif key.startswith("max") or key == "exclusiveMaximum":
            said[key] = min(said[key], value)
        elif key == "type":
            said[key] = self.both_types(list_types(said), list_types({"type": value}), pointer)
        elif key == "additionalProperties":
            said[key] = True
        elif key not in ANNOTATIONS:
            said.update(extend_description(said, f"Also {key}: {format_value(value)}."))
            self.notes.lossy(extend_pointer(pointer, key), f"A second {key} is only said in words.")

    def both_types(self, one: Sequence[str], other: Sequence[str], pointer: str) -> list[str]:
        both = [each for each in one if each in other or (each == "integer" and "number" in other)]
        both += [each for each in other if each == "integer" and "number" in one and each not in both]
        if not both:
            raise CannotSay(pointer, "its parts rule each other out")
        return both
