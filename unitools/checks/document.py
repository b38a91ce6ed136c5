"""Document: whether it is a manifest at all, JSON of bounded size, with the shape of the published schema."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from unitools.checks.findings import ManifestFinding, declare_rule, format_pointer, format_sentence
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_FIELDS = ("input_schema", "output_schema", "config_schema")
MAX_SCHEMA_NODES = 2000
MAX_SCHEMA_DEPTH = 24
MAX_SCHEMA_BYTES = 128 * 1024
MAX_NODES = 5000
MAX_DEPTH = 64
MAX_BYTES = 256 * 1024
MAX_LIST = 500
MAX_INTEGER = 2**53 - 1

TOO_LARGE = declare_rule(
    "document.size",
    f"Beside its schemas a manifest has at most {MAX_NODES:,} values, {MAX_BYTES // 1024} KiB, {MAX_DEPTH} levels and "
    f"{MAX_LIST} entries in one list.",
    "Shorten it.",
)
NOT_JSON = declare_rule(
    "document.not_json",
    "A manifest is JSON that reads the same everywhere: no NaN, no lone surrogate, no NUL, integers within 2^53.",
    "Write the value as a text, or leave it out.",
)
SCHEMA_SIZE = declare_rule(
    "schema.size",
    f"A schema has at most {MAX_SCHEMA_NODES:,} nodes and {MAX_SCHEMA_BYTES // 1024} KiB.",
    f"Keep it below {MAX_SCHEMA_NODES:,} nodes and {MAX_SCHEMA_BYTES // 1024} KiB.",
)
SCHEMA_DEPTH = declare_rule(
    "schema.depth",
    f"A schema is nested at most {MAX_SCHEMA_DEPTH} levels deep.",
    f"Keep it below {MAX_SCHEMA_DEPTH} levels.",
)


@dataclass(slots=True)
class DocumentMeasure:
    """What one look over a value found; ``over`` is set as soon as there is more than was allowed."""

    nodes: int = 0
    depth: int = 0
    longest_list: int = 0
    odd: tuple[tuple[str | int, ...], str] | None = None
    over: bool = False


def measure_document(value: Any, *, path: tuple[str | int, ...], max_nodes: int) -> DocumentMeasure:
    """Counts without recursion and never looks at more than ``max_nodes`` values."""
    found = DocumentMeasure(nodes=1)
    stack: list[tuple[tuple[str | int, ...], Any]] = [(path, value)]
    while stack:
        here, node = stack.pop()
        found.depth = max(found.depth, len(here))
        if odd := _odd(node):
            found.odd = (here, odd)
            return found
        if not isinstance(node, dict | list):
            continue
        found.nodes += len(node)
        if found.nodes > max_nodes or found.depth > MAX_DEPTH:
            found.over = True
            return found
        if isinstance(node, list):
            found.longest_list = max(found.longest_list, len(node))
            stack += [((*here, index), child) for index, child in enumerate(node)]
            continue
        for key in node:
            if not isinstance(key, str) or _odd(key):
                found.odd = (here, "A name is not a text that can be stored.")
                return found
        stack += [((*here, key), child) for key, child in node.items()]
    return found


def _odd(node: Any) -> str:
    """Why a value is no plain JSON; empty when it is."""
    match node:
        case None | bool() | dict() | list():
            return ""
        case int():
            return "" if abs(node) <= MAX_INTEGER else "The number is outside ±2^53; programs would read others."
        case float():
            return "" if math.isfinite(node) else f"{node} is not JSON."
        case str():
            return "The text holds a NUL or half a character." if re.search("[\x00\ud800-\udfff]", node) else ""
        case _:
            return f"A value of type {type(node).__name__} is not JSON."


def check_bounds(document: Any) -> Iterator[ManifestFinding]:
    """Before anything else looks at it: everything after this takes time and memory by size."""
    fields = document.items() if type(document) is dict else [("", document)]
    nodes = 0
    rest: dict[Any, Any] = {}
    for name, value in fields:
        path = (name,) if isinstance(name, str) and name else ()
        in_schema = name in SCHEMA_FIELDS
        found = measure_document(
            {name: value} if not path else value, path=path, max_nodes=MAX_SCHEMA_NODES if in_schema else MAX_NODES
        )
        if found.odd:
            yield NOT_JSON.at(*found.odd)
        elif in_schema:
            yield from _schema_bounds(name, value, found)
        else:
            nodes += found.nodes
            rest[name] = value
            if found.over or found.longest_list > MAX_LIST:
                yield TOO_LARGE.at(path, "The field holds too much to be looked at.")
                return
    if nodes > MAX_NODES or _bytes(rest) > MAX_BYTES:
        yield TOO_LARGE.at((), "The manifest is too large beside its schemas.")


def _schema_bounds(name: str, value: Any, found: DocumentMeasure) -> Iterator[ManifestFinding]:
    if found.depth > MAX_SCHEMA_DEPTH:
        yield SCHEMA_DEPTH.at((name,), "The schema is nested too deeply.")
    elif found.over:
        yield SCHEMA_SIZE.at((name,), f"The schema has more than {MAX_SCHEMA_NODES:,} nodes.")
    elif (size := _bytes(value)) > MAX_SCHEMA_BYTES:
        yield SCHEMA_SIZE.at((name,), f"The schema has {size:,} bytes.")


def _bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _fix_for(error: Any) -> str:
    match error.validator:
        case "required":
            return "Add the field."
        case "additionalProperties":
            return "Remove the field, or check its spelling."
        case "enum":
            return "Use one of: " + ", ".join(str(value) for value in error.validator_value) + "."
        case "pattern":
            return str(error.schema.get("description") or f"Match the pattern {error.validator_value}.")
        case "type":
            return f"Use a value of type {error.validator_value}."
        case "oneOf":
            return str(error.schema.get("description") or "Choose one of the forms.")
        case "uniqueItems":
            return "Name each only once."
        case _:
            return "See the manifest reference for this field."


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """As JSON Schema means it: its `$` is the end, while Python's also matches before a last line feed."""
    del validator, schema
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_ManifestValidator = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


def check_document(document: Any) -> Iterator[ManifestFinding]:
    """The shape: is it valid against the published manifest schema?"""
    validator = _ManifestValidator(manifest_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)
    for error in sorted(validator.iter_errors(document), key=lambda each: [str(part) for part in each.path]):
        yield ManifestFinding(
            format_pointer(error.path), f"manifest.{error.validator}", format_sentence(error.message), _fix_for(error)
        )
