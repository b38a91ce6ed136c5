"""Schema walk: the parts of a JSON Schema that are schemas, and where each reference leads.

Values of ``enum``, ``const``, ``default`` and ``examples`` are data: what looks like a keyword in them is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from unitools.checks.findings import escape_token, format_pointer, resolve_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import Path

ONE = frozenset({
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAP = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
# What holds the same value against another schema. Everything else goes on to a part of the value, which ends.
IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
MAX_EXPANSIONS = 20_000


def walk_subschemas(schema: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every schema in a schema that is an object, itself first, with its path."""
    stack: list[tuple[Path, Any]] = [(path, schema)]
    while stack:
        here, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield here, node
        stack += reversed([((*here, *way), child) for way, child in iterate_children(node)])


def iterate_children(node: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key, value in node.items():
        if key in ONE:
            yield (key,), value
        elif key in LIST and isinstance(value, list):
            for index, child in enumerate(value):
                yield (key, index), child
        elif key in MAP and isinstance(value, dict):
            for name, child in value.items():
                yield (key, name), child


def resolve_fragment(schema: Any, reference: str) -> Any:
    """What a ``#/…`` pointer names; nothing for anchors and for what is not there."""
    text = unquote(reference.removeprefix("#"))
    return resolve_pointer(schema, text) if not text or text.startswith("/") else None


def index_fragments(schema: dict[str, Any]) -> dict[str, Path]:
    """Every fragment that a reference may name: the pointers of the schemas, and their anchors."""
    found: dict[str, Path] = {}
    for path, node in walk_subschemas(schema):
        found[format_pointer(path)] = path
        if isinstance(anchor := node.get("$anchor"), str):
            found[anchor] = path
    # A schema may also be just true or false.
    for path, node in list(walk_subschemas(schema)):
        for way, child in iterate_children(node):
            if isinstance(child, bool):
                found[format_pointer((*path, *way))] = (*path, *way)
    return found


def normalize_reference(reference: str) -> str:
    """A local reference as a key of :func:`index_fragments`."""
    text = unquote(reference.removeprefix("#"))
    return (
        "".join("/" + escape_token(part.replace("~1", "/").replace("~0", "~")) for part in text.split("/")[1:])
        if text.startswith("/")
        else text
    )


def find_reference_loop(schema: dict[str, Any]) -> Path | None:
    """Where following references comes back to the same schema with the same value; None when it never does.

    A reference below ``properties`` or ``items`` goes on to a part of the value and ends with it, so it may come back.
    """
    known = index_fragments(schema)
    nodes = dict(walk_subschemas(schema))
    next_of = {path: list(_same_value(path, node, known)) for path, node in nodes.items()}
    done: set[Path] = set()
    for start in next_of:
        waiting: list[tuple[Path, Iterator[Path]]] = [(start, iter(next_of[start]))]
        above = {start}
        while waiting:
            here, following = waiting[-1]
            for path in following:
                if path in above:
                    return here
                if path in next_of and path not in done:
                    waiting.append((path, iter(next_of[path])))
                    above.add(path)
                    break
            else:
                waiting.pop()
                above.discard(here)
                done.add(here)
    return None


def _same_value(path: Path, node: dict[str, Any], known: dict[str, Path]) -> Iterator[Path]:
    if isinstance(reference := node.get("$ref"), str) and normalize_reference(reference) in known:
        yield known[normalize_reference(reference)]
    for way, _ in iterate_children(node):
        if way[0] in IN_PLACE:
            yield (*path, *way)


def count_expansions(schema: dict[str, Any]) -> int:
    """How many subschemas one value can be held against, references followed; capped above ``MAX_EXPANSIONS``.

    Definitions that each refer twice to the next double the work at every step: small to write, hours to validate.
    """
    anchors = {name: path for name, path in index_fragments(schema).items() if name and not name.startswith("/")}

    def target(reference: str) -> Any:
        name = normalize_reference(reference)
        return resolve_fragment(schema, "#" + format_pointer(anchors[name]) if name in anchors else reference)

    known: dict[str, int] = {}  # what has been added up; while it is being added up, 1: a cycle ends with the value
    waiting = [_Sum("", *_own_cost(schema))]
    while True:
        top = waiting[-1]
        if top.references and top.total <= MAX_EXPANSIONS:
            reference = top.references.pop()
            if reference in known:
                top.total += known[reference]
            else:
                known[reference] = 1
                waiting.append(_Sum(reference, *_own_cost(target(reference))))
            continue
        waiting.pop()
        total = min(top.total, MAX_EXPANSIONS + 1)
        if not waiting:
            return total
        known[top.name] = total
        waiting[-1].total += total


@dataclass(slots=True)
class _Sum:
    name: str
    total: int
    references: list[str]


def _own_cost(schema: Any) -> tuple[int, list[str]]:
    """How many objects a schema holds beside its definitions, and the references in them."""
    total, references, stack = 0, [], [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            total += 1
            stack += [child for key, child in value.items() if key not in ("$defs", "definitions")]
            if isinstance(reference := value.get("$ref"), str):
                references.append(reference)
    return total, references
