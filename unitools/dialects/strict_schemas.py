"""Strict schemas: whether a provider can hold the model to a schema without anything being lost by it.

A strict schema accepts exactly what the original accepts, but for one thing: for a property that may be left out null is what has to
be said. It means the same where null is the default. Where the property itself takes no null, and the answer's reader knows the
schemas (:mod:`unitools.dialects.left_out`), null stands for leaving it out, so that a default of the tool stays in force. Where
neither can be had, strict is off and the reason is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unitools.dialects.left_out import find_branch, refuses_null
from unitools.dialects.schemas import (
    CannotSay,
    Schema,
    accepts_null,
    extend_description,
    extend_pointer,
    format_value,
    list_types,
    map_subschemas,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALWAYS = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "const",
        "title",
        "description",
    }
)
_SILENT = frozenset({"$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly", "discriminator"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NULL_IS_LEFT_OUT = "Null stands for leaving it out."
_DEFAULT_IS = "Null stands for leaving it out; then it is {}."


@dataclass(frozen=True, slots=True)
class StrictRules:
    """What a provider takes in a strict schema."""

    keywords: frozenset[str]
    formats: frozenset[str]
    references: bool = False  # $ref and $defs, also recursive ones
    optional: int = 0  # how many properties may be left out
    most_items: int | None = None  # the largest minItems
    deepest: int = 10  # levels of objects and arrays
    properties: int = 5000  # in all
    values: int = 1000  # of enums, in all


OPENAI = StrictRules(
    _ALWAYS
    | {"pattern", "format", "minItems", "maxItems", "multipleOf"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    _FORMATS,
    references=True,
)
ANTHROPIC = StrictRules(_ALWAYS | {"default", "format", "minItems"}, _FORMATS | {"uri"}, optional=24, most_items=1)


def make_strict(schema: Schema, rules: StrictRules, *, null_is_left_out: bool = False) -> Schema:
    """The schema as the provider takes it when it is to hold the model to it. Raises CannotSay with the reason why it would not accept
    the same, or not be taken.

    ``null_is_left_out``: whoever reads the answer leaves out what is null and takes no null.
    """
    return _Strict(rules, schema if null_is_left_out else None).root(schema)


class _Strict:
    """``original``: the schema by which an answer's reader leaves nulls out; None: it does not."""

    def __init__(self, rules: StrictRules, original: Schema | None) -> None:
        self.rules, self.original = rules, original
        self.choices = 0  # of several objects, inside of which it is not told which one a value is
        self.optional = self.properties = self.values = 0

    def root(self, schema: Schema) -> Schema:
        if "anyOf" in schema or "$ref" in schema:
            raise CannotSay("", "the parameters are a choice of objects")
        definitions = {key: value for key, value in schema.items() if key in ("$defs", "definitions")}
        if definitions and not (self.rules.references and set(definitions) == {"$defs"}):
            raise CannotSay("/$defs", "there are references that cannot be replaced")
        said = self.schema({key: value for key, value in schema.items() if key not in definitions}, "", 0)
        for name, each in definitions.get("$defs", {}).items():
            said.setdefault("$defs", {})[name] = self.schema(each, extend_pointer("", "$defs", name), 0)
        return said

    def schema(self, schema: Any, pointer: str, depth: int) -> Schema:
        if not isinstance(schema, dict):
            raise CannotSay(pointer, "any value will do" if schema else "no value will do")
        if "$ref" in schema:
            return self.reference(schema, pointer)
        if depth > self.rules.deepest:
            raise CannotSay(pointer, f"it is nested deeper than {self.rules.deepest} levels")
        said = {key: value for key, value in schema.items() if key not in _SILENT and key != "examples"}
        if schema.get("examples"):
            said = extend_description(
                said, f"Examples: {', '.join(format_value(each) for each in schema['examples'])}."
            )
        self.check_keywords(said, pointer)
        if "anyOf" in said and not set(said) <= {"anyOf", "title", "description", "default"}:
            raise CannotSay(extend_pointer(pointer, "anyOf"), "anyOf stands beside other conditions")
        if not {"type", "const", "enum", "anyOf"} & set(said):
            raise CannotSay(pointer, "any value will do")
        types = () if "anyOf" in said else list_types(said)
        if types:
            said["type"] = types[0] if len(types) == 1 else list(types)
        if "object" in types:
            said = self.object(said, pointer)
        if "array" in types and not isinstance(said.get("items"), dict):
            raise CannotSay(extend_pointer(pointer, "items"), "its items may be anything")
        closed = {"additionalProperties": said.pop("additionalProperties")} if "additionalProperties" in said else {}
        is_choice = "anyOf" in said and find_branch(said, self.original or {}) is None
        self.choices += is_choice
        inner = map_subschemas(said, lambda each, at: self.schema(each, at, depth + 1), pointer)
        self.choices -= is_choice
        return {**inner, **closed}

    def reference(self, schema: Schema, pointer: str) -> Schema:
        if set(schema) != {"$ref"} or not self.rules.references:
            raise CannotSay(pointer, "there is a reference that cannot be replaced")
        if schema["$ref"] != "#" and not str(schema["$ref"]).startswith("#/$defs/"):
            raise CannotSay(pointer, "it refers to outside $defs")
        return schema

    def check_keywords(self, schema: Mapping[str, Any], pointer: str) -> None:
        allowed = self.rules.keywords | {"default"}  # which `object` looks at
        for key, value in schema.items():
            at = extend_pointer(pointer, key)
            if key not in allowed:
                raise CannotSay(at, f"{key} is not taken")
            if key == "format" and value not in self.rules.formats:
                raise CannotSay(at, f"the format {value!r} is not taken")
            if key == "pattern" and "(?" in value.replace("(?:", ""):
                raise CannotSay(at, "a pattern that looks around is not taken")
            if key == "minItems" and self.rules.most_items is not None and value > self.rules.most_items:
                raise CannotSay(at, f"minItems over {self.rules.most_items} is not taken")
        if "default" in schema and "default" not in self.rules.keywords and schema["default"] is not None:
            raise CannotSay(extend_pointer(pointer, "default"), "it has a default, which would be lost")
        self.values += len(schema.get("enum", ()))
        if self.values > self.rules.values:
            raise CannotSay(pointer, f"there are more than {self.rules.values} values of enums")

    def object(self, schema: Schema, pointer: str) -> Schema:
        properties: dict[str, Any] = dict(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False:
            raise CannotSay(
                pointer, "it takes further properties, which would be lost; additionalProperties: false rules them out"
            )
        required = list(dict.fromkeys(schema.get("required", ())))
        if not set(required) <= set(properties):
            raise CannotSay(extend_pointer(pointer, "required"), "it requires what is not among its properties")
        self.properties += len(properties)
        if self.properties > self.rules.properties:
            raise CannotSay(pointer, f"there are more than {self.rules.properties} properties")
        for name in [each for each in properties if each not in required]:
            if self.optional < self.rules.optional:
                self.optional += 1
                continue
            properties[name] = self.null_for_left_out(properties[name], extend_pointer(pointer, "properties", name))
            required.append(name)
        if "default" not in self.rules.keywords:
            properties = {name: _without_default(each) for name, each in properties.items()}
        in_order = [name for name in properties if name in required]
        return {**schema, "properties": properties, "required": in_order}

    def null_for_left_out(self, schema: Any, pointer: str) -> Schema:
        """All properties are required. One may be left out of the original and only null can be said for that."""
        if self.rules.optional:
            raise CannotSay(pointer, f"more than {self.rules.optional} properties may be left out")
        if isinstance(schema, dict) and schema.get("default", ...) is None and accepts_null(schema):
            return extend_description(schema, _NULL_IS_LEFT_OUT)
        if self.original is None or self.choices or not refuses_null(schema, self.original):
            raise CannotSay(pointer, "it may be left out, and null would not mean the same")
        default = schema.get("default", ...)
        told = _NULL_IS_LEFT_OUT if default is ... else _DEFAULT_IS.format(format_value(default))
        bare = {key: value for key, value in schema.items() if key not in ("default", "description")}
        described = {"description": schema["description"]} if schema.get("description") else {}
        return extend_description({**described, "anyOf": [*bare.get("anyOf", [bare]), {"type": "null"}]}, told)


def _without_default(schema: Any) -> Any:
    if isinstance(schema, dict) and schema.get("default", ...) is None:
        return {key: value for key, value in schema.items() if key != "default"}
    return schema
