"""Schema documents: what one consists of, for a program that compares two of them.

A :class:`Schema` is a private copy of one document with an index of its subschemas: where each stands, whether the document
can be understood at all (``problem``), and what its local references name. A :class:`SchemaPair` holds two of them and knows which
subschemas mean the same on both sides: equal without their texts, with references that lead to the same definitions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_NODES = 20_000
MAX_DEPTH = 100
DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#")
TEXTS = ("title", "description", "$comment", "examples")
NOTES = ("default", "deprecated", "readOnly", "writeOnly")
IGNORED = frozenset({*TEXTS, *NOTES, "$schema", "$id", "$defs", "definitions"})
BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
BY_INDEX = ("allOf", "anyOf", "oneOf", "prefixItems")
ONE = (
    "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
MOVES_REFERENCES = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"}
)
TYPES = frozenset({"null", "boolean", "object", "array", "string", "integer", "number"})

Node = dict[str, Any]
EMPTY: Node = {}  # `true`: everything is valid
NEVER: Node = {"not": {}}  # `false`: nothing is


class Incomparable(Exception):
    """The comparison would take too much work, or a document is beyond what is understood."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float("-inf") < value < float("inf")


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_type(value: Any) -> bool:
    named = value if isinstance(value, list) else [value]
    return bool(named) and all(isinstance(each, str) and each in TYPES for each in named)


_FORM: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "required": _is_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    "uniqueItems": lambda value: isinstance(value, bool),
    "multipleOf": lambda value: is_number(value) and value > 0,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    **dict.fromkeys(
        (
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
        ),
        _is_count,
    ),
    **dict.fromkeys(("pattern", "format", "$ref", "$id", "$schema"), _is_text),
    **dict.fromkeys(BY_NAME, lambda value: isinstance(value, dict)),
    **dict.fromkeys(BY_INDEX, lambda value: isinstance(value, list)),
}


def format_step(name: str | int) -> str:
    """One step of a JSON pointer."""
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def as_node(value: Any) -> Node:
    """A subschema as an object; ``true`` and ``false`` are the two constants."""
    if isinstance(value, bool):
        return EMPTY if value else NEVER
    node: Node = value
    return node


def iterate_subschemas(node: Node) -> Iterator[tuple[str, Any]]:
    """The subschemas that stand directly in a schema, each with its place in it."""
    for keyword in BY_NAME:
        for name, child in node.get(keyword, EMPTY).items():
            yield format_step(keyword) + format_step(name), child
    for keyword in BY_INDEX:
        for index, child in enumerate(node.get(keyword, ())):
            yield f"/{keyword}/{index}", child
    for keyword in ONE:
        if keyword in node:
            yield f"/{keyword}", node[keyword]


class Schema:
    """A private copy of one document, indexed. ``problem`` says why it cannot be compared; empty when it can."""

    def __init__(self, document: Any) -> None:
        self.problem = ""
        self.places: dict[str, Node] = {}  # where -> subschema, outer ones first
        try:
            self.root = as_node(json.loads(json.dumps(document)))
        except (ValueError, TypeError, RecursionError):
            self.root, self.problem = EMPTY, "it is not JSON, or nested too deeply"
            return
        waiting: list[tuple[str, Any, int]] = [("", self.root, 0)]
        while waiting and not self.problem:
            place, node, depth = waiting.pop()
            if isinstance(node, bool) or node is NEVER or node is EMPTY:
                continue
            self.problem = self._problem(place, node, depth)
            if not self.problem:
                self.places[place] = node
                waiting += [(place + suffix, child, depth + 1) for suffix, child in iterate_subschemas(node)]

    def _problem(self, place: str, node: Any, depth: int) -> str:
        where = f"at {place or 'its root'}"
        if not isinstance(node, dict):
            return f"{where} stands no schema"
        if depth > MAX_DEPTH or len(self.places) >= MAX_NODES:
            return f"it is too large ({MAX_NODES:,} subschemas, {MAX_DEPTH} levels)"
        if wrong := [keyword for keyword, is_right in _FORM.items() if keyword in node and not is_right(node[keyword])]:
            return f"{where} `{wrong[0]}` has a wrong form"
        if moved := [keyword for keyword in node if keyword in MOVES_REFERENCES or (keyword == "$id" and place)]:
            return f"{where} `{moved[0]}` changes what references mean"
        if node.get("$schema", DIALECTS[0]) not in DIALECTS:
            return f"{where} another dialect is named"
        return ""

    def target(self, reference: str) -> tuple[str, Node] | None:
        """Where a local reference leads: the place and the subschema there; None for everything else."""
        if reference != "#" and not reference.startswith("#/"):
            return None
        place = "".join(format_step(_plain(part)) for part in unquote(reference[1:]).split("/")[1:])
        node = self.places.get(place)
        return None if node is None else (place, node)


def _plain(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


class SchemaPair:
    """Two documents, and which of their subschemas mean the same."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self.old, self.new = old, new
        self.owner = {id(node): schema for schema in (old, new) for node in schema.places.values()}
        self._numbers: dict[Any, int] = {}
        self._form = {id(EMPTY): self._number("true"), id(NEVER): self._number("false")}
        for schema in (old, new):
            for node in reversed(schema.places.values()):  # inner ones before outer ones
                self._form[id(node)] = self._form_of(node)
        self._unlike = self._leading_elsewhere()

    def _number(self, form: Any) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _form_of(self, node: Node) -> int:
        """A number for what a schema says, without its texts; equal schemas have equal numbers."""
        parts: list[tuple[str, Any]] = []
        for keyword in sorted(node.keys() - IGNORED):
            value: Any = node[keyword]
            if keyword in BY_NAME:
                said: Any = tuple(sorted((name, self.form(child)) for name, child in value.items()))
            elif keyword in BY_INDEX:
                said = tuple(map(self.form, value))
            elif keyword in ONE:
                said = self.form(value)
            elif keyword in ("required", "type"):
                said = tuple(sorted(set(value))) if isinstance(value, list) else (value,)
            else:
                said = json.dumps(value, sort_keys=True)
            parts.append((keyword, said))
        return self._number(tuple(parts)) if parts else self._number("true")

    def form(self, value: Any) -> int:
        """The same number for subschemas that look the same. A schema that was made up has a number of its own."""
        return self._form.get(id(as_node(value)), -1)

    def _leading_elsewhere(self) -> set[int]:
        """The subschemas that hold, at any depth, a reference that does not mean the same on both sides."""
        references = {node["$ref"] for side in (self.old, self.new) for node in side.places.values() if "$ref" in node}
        targets = {each: (self.old.target(each), self.new.target(each)) for each in references}
        unlike = {
            each for each, (a, b) in targets.items() if a is None or b is None or self.form(a[1]) != self.form(b[1])
        }
        for _ in range(50):
            marked: set[int] = set()
            for side in (self.old, self.new):
                for node in reversed(side.places.values()):
                    if node.get("$ref") in unlike or any(id(child) in marked for _, child in _meant(node)):
                        marked.add(id(node))
            more = {
                each for each, ends in targets.items() if any(end and id(end[1]) in marked for end in ends)
            } - unlike
            if not more:
                return marked
            unlike |= more
        return set(self.owner)

    def same(self, a: Any, b: Any) -> bool:
        """Do two subschemas, of either side, certainly mean the same?"""
        a, b = as_node(a), as_node(b)
        if a is b:
            return True
        form = self.form(a)
        return form >= 0 and form == self.form(b) and id(a) not in self._unlike and id(b) not in self._unlike

    def target(self, node: Node) -> tuple[str, Node] | None:
        """What the ``$ref`` of a subschema names, in the document that it stands in."""
        return self.owner[id(node)].target(node["$ref"]) if id(node) in self.owner else None


def _meant(node: Node) -> Iterator[tuple[str, Any]]:
    """The subschemas that count for what a schema means: a definition does only where something refers to it."""
    return (each for each in iterate_subschemas(node) if not each[0].startswith(("/$defs/", "/definitions/")))
