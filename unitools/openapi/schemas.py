"""OpenAPI schemas: JSON Schema 2020-12 of what a document says in its own revision, with the definitions that it refers to.

References are kept: a schema that is used in many places, or within itself, is written once under ``$defs``. Expanding them is what
makes a document of two megabytes into one of fifty. Every keyword that is not taken over is a diagnostic.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from unitools.checks.patterns import MAX_TOTAL, find_refusal_reason, measure_pattern
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit, escape_token
from unitools.openapi.texts import clean_text, find_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from unitools.openapi.documents import OpenApiDocument

Schema = dict[str, Any]
TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
MAX_INTEGER = 2**53 - 1
HOISTED_FROM = 14  # levels of one schema before what is below gets a definition of its own
MAX_INNER_TEXT = 300
MAX_DEFAULT_CHARS = 1000
# Keywords and values of one side of an operation: references bring the same place up again and again.
MAX_LOOKED_AT = 500_000
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_NUMBERS = frozenset({"minimum", "maximum", "multipleOf"})
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_EXCLUDED = {limit: flag for flag, limit in _BOUNDS.items()}
_ONE = frozenset({"not", "items", "additionalProperties"})
_ONE_31 = frozenset({"if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_NAMED_31 = frozenset({"patternProperties", "dependentSchemas"})
# What says nothing about values, and is told to nobody.
_SILENT = frozenset({
    "example", "examples", "externalDocs", "xml", "title", "$comment", "$defs", "definitions", "$schema", "x-nullable",
    "nullable", "contentMediaType", "contentEncoding", "id", "collectionFormat", "allowReserved", "allowEmptyValue", "style",
    "explode", "in", "name", "required",
})  # fmt: skip
_FORMAT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(slots=True)
class SchemaReader:
    """Reads schemas of one side of an operation into one set of definitions.

    ``is_input``: what an agent sends, without what only the service sets; else what it returns. ``with_texts``: descriptions are
    taken over. ``max_nodes`` and ``max_bytes``: how much of the definitions is written out; of what is further away than that any
    value is taken, and a diagnostic says so.
    """

    document: OpenApiDocument
    is_input: bool
    max_nodes: int
    max_bytes: int
    with_texts: bool = True
    definitions: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, DocumentDiagnostic] = field(default_factory=dict)
    nodes: int = 0
    bytes: int = 0
    _names: dict[str, str] = field(default_factory=dict)  # pointer → name of its definition
    _taken: dict[str, int] = field(default_factory=dict)  # word → how often it was wanted
    _waiting: deque[tuple[str, Any]] = field(default_factory=deque)
    _patterns: int = 0
    _looked_at: int = 0

    def note(self, what: str, pointer: str, message: str) -> None:
        """One diagnostic of each kind: the first place stands for all."""
        self.diagnostics.setdefault(what, DocumentDiagnostic(pointer, message))

    def read(self, said: Any, pointer: str) -> Any:
        """One schema, whose definitions are read by :meth:`finish`."""
        return self._convert(said, pointer, 0)

    def finish(self) -> None:
        """Read what was referred to, nearest first, and what that refers to."""
        is_full = False
        while self._waiting:
            pointer, said = self._waiting.popleft()
            name = self._names[pointer]
            found = {} if is_full else self._convert(said, pointer, 0)
            nodes, size = measure_schema(found)
            is_full = is_full or self.nodes + nodes > self.max_nodes or self.bytes + size > self.max_bytes
            if is_full:
                found = {}
                self._note_far(pointer)
            else:
                self.nodes += nodes
                self.bytes += size
            self.definitions[name] = found

    def _note_far(self, pointer: str) -> None:
        said = "What is nested deeper is not described: any value will do there, and the service judges."
        self.note("far", pointer, said)

    def refer(self, pointer: str, said: Any) -> Schema:
        """A reference to the definition of what stands there."""
        if pointer not in self._names:
            self._names[pointer] = self._name(pointer)
            self._waiting.append((pointer, said))
        return {"$ref": f"#/$defs/{self._names[pointer]}"}

    def _name(self, pointer: str) -> str:
        last = unquote(pointer.rpartition("/")[2]).replace("~1", "/").replace("~0", "~")
        last = (
            last.rstrip(".").rpartition(".")[2] or last
        )  # of io.k8s.api.core.v1.Pod the last word tells it apart, mostly
        word = re.sub(r"[^A-Za-z0-9_]+", "_", last).strip("_")[:60] or "part"
        number = self._taken.get(word, 0) + 1
        while number > 1 and f"{word}_{number}" in self._taken:
            number += 1
        self._taken[word] = number
        name = word if number == 1 else f"{word}_{number}"
        self._taken.setdefault(name, 1)
        return name

    # One schema.

    def _convert(self, said: Any, pointer: str, depth: int) -> Any:
        if isinstance(said, bool):
            return said if self.document.revision == "3.1" else {}
        if not isinstance(said, dict):
            self.note("no_schema", pointer, "What stands there is no schema, so any value is taken.")
            return {}
        if isinstance(reference := said.get("$ref"), str):
            target = self.document.find(reference, pointer)
            found: Schema = self.refer(reference.removeprefix("#"), target)
            beside = {name: value for name, value in said.items() if name != "$ref"}
            if self.document.revision == "3.1" and beside:
                return found | self._keywords(beside, pointer, depth)
            if (description := said.get("description")) and self.with_texts:
                return found | self._text(description, f"{pointer}/description")
            if beside:
                self.note(
                    "siblings", pointer, "What stands beside a $ref says nothing in this revision, and is left out."
                )
            return found
        if depth > HOISTED_FROM and said.keys() & {
            "properties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "additionalProperties",
        }:
            return self.refer(pointer, said)
        return self._keywords(said, pointer, depth)

    def _keywords(self, said: Schema, pointer: str, depth: int) -> Schema:
        self._looked_at += len(said) + sum(len(each) for each in said.values() if isinstance(each, dict | list))
        if self._looked_at > MAX_LOOKED_AT:
            self._note_far(pointer)
            return {}
        made: Schema = {}
        is_31 = self.document.revision == "3.1"
        for name, value in said.items():
            at = f"{pointer}/{escape_token(str(name))}"
            if said.get(_EXCLUDED.get(name, "")) is True:
                continue  # the flag beside it makes a limit of its own
            if name in _COUNTS or name in _NUMBERS:
                self._number(made, name, value, at)
            elif name in _BOUNDS:
                self._bound(made, said, name, value, at)
            elif name in _ONE or (is_31 and name in _ONE_31):
                self._one(made, name, value, at, depth)
            elif name in _LISTS or (is_31 and name == "prefixItems"):
                self._list(made, name, value, at, depth)
            elif is_31 and name in _NAMED_31 and isinstance(value, dict):
                made[name] = {
                    key: self._convert(each, f"{at}/{escape_token(key)}", depth + 2) for key, each in value.items()
                }
            elif name in _SIMPLE:
                _SIMPLE[name](self, made, value, at)
            elif name in _SILENT or str(name).startswith("x-") or name == "properties":
                continue
            elif is_31 and name in ("const", "dependentRequired"):
                made[name] = value
            else:
                self.note(f"keyword {name}", at, f"The keyword {str(name)[:60]!a} is not taken over.")
        self._properties(made, said, pointer, depth)
        self._nullable(made, said, pointer)
        return made

    def _properties(self, made: Schema, said: Schema, pointer: str, depth: int) -> None:
        given = said.get("properties")
        required = (
            [each for each in said["required"] if isinstance(each, str)]
            if isinstance(said.get("required"), list)
            else []
        )
        left_out: set[str] = set()
        if isinstance(given, dict):
            made["properties"] = {}
            for key, each in given.items():
                at = f"{pointer}/properties/{escape_token(key)}"
                if problem := find_name_problem(key):
                    raise DocumentUnfit(at, problem, "Correct the name in the document, or leave the operation out.")
                if self.is_input and isinstance(each, dict) and each.get("readOnly") is True:
                    left_out.add(key)
                    continue
                if not self.is_input and isinstance(each, dict) and each.get("writeOnly") is True:
                    left_out.add(key)
                    continue
                made["properties"][key] = self._convert(each, at, depth + 2)
        kept = [each for each in dict.fromkeys(required) if each not in left_out]
        if kept:
            made["required"] = kept

    def _nullable(self, made: Schema, said: Schema, pointer: str) -> None:
        if self.document.revision == "3.1" or True not in (said.get("nullable"), said.get("x-nullable")):
            return
        if "type" in made:
            kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
            made["type"] = list(dict.fromkeys([*kinds, "null"]))
            if "enum" in made and None not in made["enum"]:
                made["enum"] = [*made["enum"], None]
        elif made.keys() & {"allOf", "anyOf", "oneOf"}:
            inner = dict(made)
            texts = {name: inner.pop(name) for name in ("description", "default", "deprecated") if name in inner}
            made.clear()
            made |= texts | {"anyOf": [inner, {"type": "null"}]}
            self.note("nullable", pointer, "nullable stands beside no type; null is taken there all the same.")

    def _number(self, made: Schema, name: str, value: Any, at: str) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        whole = int(value) if is_number and value == int(value) else value
        if not is_number or abs(value) > MAX_INTEGER or (name == "multipleOf" and value <= 0):
            self.note(f"number {name}", at, f"{name} is no number that is read alike everywhere, and is left out.")
        elif name in _COUNTS and not (isinstance(whole, int) and whole >= 0):
            self.note(f"number {name}", at, f"{name} is no count, and is left out.")
        else:
            made.setdefault(name, whole)

    def _bound(self, made: Schema, said: Schema, name: str, value: Any, at: str) -> None:
        """A flag beside a limit before 3.1, a limit of its own since."""
        if isinstance(value, bool):
            limit = said.get(_BOUNDS[name])
            if value and limit is not None:
                self._number(made, name, limit, at)
            return
        self._number(made, name, value, at)

    def _one(self, made: Schema, name: str, value: Any, at: str, depth: int) -> None:
        if name == "items" and isinstance(value, list):
            self._list(made, "prefixItems", value, at, depth)
        elif name == "additionalProperties" and isinstance(value, bool):
            made[name] = value
        else:
            made[name] = self._convert(value, at, depth + 1)

    def _list(self, made: Schema, name: str, value: Any, at: str, depth: int) -> None:
        if isinstance(value, list) and value:
            made[name] = [self._convert(each, f"{at}/{index}", depth + 2) for index, each in enumerate(value)]
        else:
            self.note(f"list {name}", at, f"{name} holds no schemas, and is left out.")

    def _type(self, made: Schema, value: Any, at: str) -> None:
        if value == "file":
            raise DocumentUnfit(at, "A file stands where none can be sent.", "Leave the operation out.")
        named = value if isinstance(value, list) else [value]
        known = [each for each in dict.fromkeys(each for each in named if isinstance(each, str)) if each in TYPES]
        if len(known) < len(named):
            self.note(
                "type", at, f"The type {str(value)[:60]!a} is none of JSON Schema; any value is taken in its place."
            )
        if known and len(known) == len(named):
            made["type"] = known[0] if len(known) == 1 else known

    def _enum(self, made: Schema, value: Any, at: str) -> None:
        if not (isinstance(value, list) and value):
            self.note("enum", at, "enum holds no values, and is left out.")
            return
        kept: dict[str, Any] = {}
        for each in value:
            if isinstance(each, str) and (problem := find_name_problem(each)):
                raise DocumentUnfit(at, problem, "Correct the value in the document, or leave the operation out.")
            kept.setdefault(json.dumps(each, sort_keys=True, default=str), each)
        made["enum"] = list(kept.values())

    def _pattern(self, made: Schema, value: Any, at: str) -> None:
        why = find_refusal_reason(value) if isinstance(value, str) else "It is no text."
        size = measure_pattern(value[:1000]) if isinstance(value, str) else 0
        if why or self._patterns + size > MAX_TOTAL:
            self.note("pattern", at, f"A pattern is left out: {why or 'there are too many.'}")
            return
        self._patterns += size
        made["pattern"] = value

    def _format(self, made: Schema, value: Any, at: str) -> None:
        if isinstance(value, str) and _FORMAT.fullmatch(value):
            # Formats of numbers say their size, and of texts how they are meant; neither is held against a value.
            if value not in ("int32", "int64", "float", "double", "password", "byte", "binary", "regex"):
                made["format"] = value
        else:
            self.note("format", at, "A format is no word, and is left out.")

    def _default(self, made: Schema, value: Any, at: str) -> None:
        try:
            size = len(json.dumps(value, allow_nan=False))
        except ValueError:
            size = MAX_DEFAULT_CHARS + 1
        text_problem = isinstance(value, str) and bool(find_name_problem(value))
        if size > MAX_DEFAULT_CHARS or text_problem or not self.is_input:
            if self.is_input:
                self.note("default", at, "A default is left out: it is too long, or holds what nobody sees.")
            return
        made["default"] = value

    def _described(self, made: Schema, value: Any, at: str) -> None:
        if self.with_texts:
            made |= self._text(value, at)

    def _text(self, value: Any, at: str) -> Schema:
        text, why = clean_text(value, MAX_INNER_TEXT)
        if why:
            self.note(f"text {why}", at, why)
        return {"description": text} if text else {}

    def _flag(self, made: Schema, value: Any, at: str) -> None:
        name = at.rpartition("/")[2]
        if isinstance(value, bool) and value:
            made[name] = value


_SIMPLE: dict[str, Callable[[SchemaReader, Schema, Any, str], None]] = {
    "type": SchemaReader._type,
    "enum": SchemaReader._enum,
    "pattern": SchemaReader._pattern,
    "format": SchemaReader._format,
    "default": SchemaReader._default,
    "description": SchemaReader._described,
    "deprecated": SchemaReader._flag,
    "uniqueItems": SchemaReader._flag,
    "readOnly": lambda *_: None,
    "writeOnly": lambda *_: None,
}


def keep_reachable(schema: Schema, definitions: Schema) -> Schema:
    """The schema with those of the definitions that it leads to."""
    kept: set[str] = set()
    stack: list[Any] = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            name = reference.removeprefix("#/$defs/") if isinstance(reference, str) else ""
            if name in definitions and name not in kept:
                kept.add(name)
                stack.append(definitions[name])
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    found = {name: definitions[name] for name in definitions if name in kept}
    return schema | {"$defs": found} if found else schema


def measure_schema(schema: Any) -> tuple[int, int]:
    """Nodes as the rules of manifests count them, and bytes."""
    nodes, stack = 1, [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            nodes += len(value)
            stack += value.values()
        elif isinstance(value, list):
            nodes += len(value)
            stack += value
    return nodes, len(json.dumps(schema, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass"))
