"""Shapes: which control, or which controls, a JSON Schema asks for.

A form needs less than a validator: references are followed and ``allOf`` is merged, and of what only narrows a value (``not``,
``contains``, ``uniqueItems``, …) nothing is read. Whether a value may be sent is asked of the schema itself, by whoever sends it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from unitools.checks.findings import format_pointer
from unitools.checks.schema_walk import index_fragments, normalize_reference, resolve_fragment

NEVER: dict[str, Any] = {"not": {}}  # what no value fits
# Keywords by which a schema without a type says what kind of value it is about, the surest first.
_TELLING = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
# Without one of these a branch of oneOf or anyOf only narrows what stands beside it.
_SHAPING = frozenset(
    {
        "type",
        "$ref",
        "enum",
        "const",
        "properties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "patternProperties",
    }
)
_CONDITIONAL = ("then", "else")
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_MAX_LOOKS = 4  # levels of a value that are looked at to tell which branch it is


class ControlKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    VALUES = "values"  # one of a few: an enum, a const, yes or no, null
    OBJECT = "object"
    ARRAY = "array"
    BRANCHES = "branches"  # one of several shapes
    ANY = "any"  # JSON text


@dataclass(frozen=True, slots=True)
class ControlShape:
    """``schema``: merged, and about values that are not null. ``values`` and ``branches``: each with its label."""

    kind: ControlKind
    schema: dict[str, Any]
    nullable: bool = False
    values: tuple[tuple[str, Any], ...] = ()
    branches: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def title(self) -> str:
        return str(self.schema.get("title", ""))

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))

    @property
    def is_container(self) -> bool:
        return self.kind in (ControlKind.OBJECT, ControlKind.ARRAY)


@dataclass(slots=True)
class ShapeReader:
    """The shapes of one schema and of what it refers to."""

    root: dict[str, Any]
    _fragments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fragments = index_fragments(self.root)

    def resolve(self, reference: str) -> Any:
        path = self._fragments.get(normalize_reference(reference))
        return NEVER if path is None else resolve_fragment(self.root, "#" + format_pointer(path))

    def merge(self, schema: Any, *, seen: frozenset[str] = frozenset()) -> dict[str, Any]:
        """One object in place of references and ``allOf``; what was said first of a title or a bound counts."""
        if not isinstance(schema, dict):
            return {} if schema else NEVER
        made = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", "$defs", "definitions")}
        parts = list(schema.get("allOf", ()))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen = seen | {reference}
            parts.insert(0, self.resolve(reference))
        for part in parts:
            made = _combine(made, self.merge(part, seen=seen))
        conditional = [made[key] for key in _CONDITIONAL if key in made]
        for part in (*conditional, *made.get("dependentSchemas", {}).values()):
            more = self.merge(part, seen=seen).get("properties", {})
            if more:
                made = made | {"properties": more | made.get("properties", {})}
        return made

    def read(self, schema: Any) -> ControlShape:
        """Null is one of the values to choose from; beside any other control it is one of its own."""
        shape = self._read(schema)
        if shape.kind is ControlKind.VALUES and shape.nullable:
            return ControlShape(shape.kind, shape.schema, values=(*shape.values, ("null", None)))
        return shape

    def _read(self, schema: Any) -> ControlShape:
        merged = self.merge(schema)
        nullable = False
        if (branches := self._list_branches(merged)) is not None:
            nullable = any(_is_null(each) for each in branches)
            rest = [each for each in branches if not _is_null(each)]
            if rest and all("const" in each or "enum" in each for each in rest):
                values = [pair for each in rest for pair in _list_values(each)]
                return ControlShape(ControlKind.VALUES, _without_branches(merged), nullable, tuple(values))
            if len(rest) != 1:
                named = tuple((self._name(each, place), each) for place, each in enumerate(branches, 1))
                return ControlShape(ControlKind.BRANCHES, _without_branches(merged), branches=named)
            inner = self.read(rest[0])
            return ControlShape(inner.kind, inner.schema, nullable or inner.nullable, inner.values, inner.branches)
        return self._read_plain(merged)

    def _read_plain(self, merged: dict[str, Any]) -> ControlShape:
        if "const" in merged or "enum" in merged:
            return ControlShape(ControlKind.VALUES, merged, values=tuple(_list_values(merged)))
        types = _list_types(merged)
        nullable, rest = "null" in types, [each for each in types if each != "null"]
        if not types:
            return ControlShape(ControlKind.ANY, merged)
        if not rest:
            return ControlShape(ControlKind.VALUES, merged, values=(("null", None),))
        if len(rest) > 1:
            named = tuple((each, merged | {"type": each}) for each in types)
            return ControlShape(ControlKind.BRANCHES, merged, branches=named)
        if rest == ["boolean"]:
            return ControlShape(ControlKind.VALUES, merged, nullable, values=(("true", True), ("false", False)))
        kinds = {
            "string": ControlKind.TEXT,
            "number": ControlKind.NUMBER,
            "integer": ControlKind.INTEGER,
            "object": ControlKind.OBJECT,
        }
        return ControlShape(kinds.get(rest[0], ControlKind.ARRAY), merged, nullable)

    def _list_branches(self, merged: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The ways in which a value may be built; None where nothing is to be chosen."""
        key = next((key for key in ("oneOf", "anyOf") if isinstance(merged.get(key), list)), None)
        if key is None:
            return None
        parts = merged[key]
        if not any(isinstance(each, dict) and _SHAPING & each.keys() for each in parts):
            return None
        base = _without_branches(merged, but_of=key)
        about = {"title", "description", "default", "examples"}  # these are said of the whole
        bare = {name: value for name, value in base.items() if name not in about}
        made = [_combine(self.merge(each), bare) for each in parts if each is not False]
        if (
            sum(not _is_null(each) for each in made) == 1
        ):  # one shape, and perhaps null: what is said of the whole is said of it
            return [
                each if _is_null(each) else {name: base[name] for name in about if name in base} | each for each in made
            ]
        return made

    def _name(self, schema: dict[str, Any], place: int) -> str:
        if schema.get("title"):
            return str(schema["title"])
        fixed = [
            f"{name} {_write(each['const'])}"
            for name, each in schema.get("properties", {}).items()
            if isinstance(each, dict) and "const" in each
        ]
        kind = " | ".join(_list_types(schema)) or "JSON"
        if fixed:
            return ", ".join(fixed[:2])
        if schema.get("required"):
            return f"{kind}: {', '.join(schema['required'][:4])}"
        return f"{kind} {place}" if kind in ("object", "array", "JSON") else kind

    def fits(self, schema: Any, value: Any, *, looks: int = _MAX_LOOKS) -> bool:
        """Whether a value is built as the schema says; bounds, patterns and formats are not asked."""
        merged = self.merge(schema)
        if merged == NEVER:
            return False
        if "const" in merged and not is_same(merged["const"], value):
            return False
        if "enum" in merged and not any(is_same(each, value) for each in merged["enum"]):
            return False
        said = merged.get("type")
        if said is not None and not any(is_of(each, value) for each in ([said] if isinstance(said, str) else said)):
            return False
        if not looks:
            return True
        for key in ("oneOf", "anyOf"):
            parts = merged.get(key)
            if parts and not any(self.fits(each, value, looks=looks - 1) for each in parts):
                return False
        if isinstance(value, dict):
            return self._fits_object(merged, value, looks)
        if isinstance(value, list):
            return all(
                self.fits(find_item(merged, place), each, looks=looks - 1) for place, each in enumerate(value[:20])
            )
        return True

    def _fits_object(self, merged: dict[str, Any], value: dict[str, Any], looks: int) -> bool:
        if not set(merged.get("required", ())) <= value.keys():
            return False
        known = merged.get("properties", {})
        if find_entry(merged) is None and not value.keys() <= known.keys():
            return False
        return all(self.fits(known[name], each, looks=looks - 1) for name, each in value.items() if name in known)


def _combine(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    made = dict(one)
    for key, value in other.items():
        if key not in made:
            made[key] = value
        elif key == "properties":
            both = {name: {"allOf": [made[key][name], each]} for name, each in value.items() if name in made[key]}
            made[key] = made[key] | value | both
        elif key == "required":
            made[key] = [*made[key], *(each for each in value if each not in made[key])]
        elif key == "type":
            first, second = _spread(made[key]), _spread(value)
            made[key] = [each for each in first if each in second] or [each for each in second if each in first]
            if len(made[key]) == 1:
                made[key] = made[key][0]
        elif key == "enum":
            made[key] = [each for each in made[key] if any(is_same(each, said) for said in value)]
        elif key == "additionalProperties" and value is False:
            made[key] = False
        elif key == "not" and value == {}:
            return NEVER
    return NEVER if made.get("type") == [] else made


def _spread(said: Any) -> list[str]:
    """Every integer is a number."""
    types = [said] if isinstance(said, str) else list(said)
    return [*types, "integer"] if "number" in types and "integer" not in types else types


def _without_branches(merged: dict[str, Any], *, but_of: str = "") -> dict[str, Any]:
    gone = {but_of} if but_of else {"oneOf", "anyOf"}
    return {key: value for key, value in merged.items() if key not in gone}


def _is_null(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("null", ["null"]) or ("const" in schema and schema["const"] is None)


def _list_values(merged: dict[str, Any]) -> list[tuple[str, Any]]:
    said = [merged["const"]] if "const" in merged else merged["enum"]
    title = str(merged.get("title", "")) if "const" in merged else ""
    return [(f"{title} ({_write(each)})" if title else _write(each), each) for each in said]


def _list_types(merged: dict[str, Any]) -> list[str]:
    said = merged.get("type")
    if said is not None:
        types = [said] if isinstance(said, str) else list(said)
        return [each for each in types if each != "integer" or "number" not in types]
    return next(([kind] for kind, keys in _TELLING.items() if any(key in merged for key in keys)), [])


def _write(value: Any) -> str:
    return value if isinstance(value, str) and value else write_json(value)


def write_json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON.get(kind, ()))


def is_same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(is_same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


def find_item(merged: dict[str, Any], place: int) -> Any:
    """The schema of an entry of an array; False where there may be none."""
    first = merged.get("prefixItems", ())
    return first[place] if place < len(first) else merged.get("items", True)


def find_entry(merged: dict[str, Any]) -> Any:
    """The schema of entries whose names no property has; None where there may be none."""
    more = merged.get("additionalProperties", merged.get("unevaluatedProperties", True))
    patterns = merged.get("patternProperties", {})
    if more is False:
        return (next(iter(patterns.values())) if len(patterns) == 1 else True) if patterns else None
    return True if patterns else more
