"""Manifest validation: whether a manifest is valid against the published schema.

Asked on an author's machine, where nothing but pydantic and anyio is installed: so it knows the keywords that
``manifest.schema.json`` uses, and refuses to judge by any other. The hub asks a full implementation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Found = Iterator[tuple[str, str]]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
}
_SAY_NOTHING = {"$schema", "$id", "title", "description", "default", "format"}


class PublicationFinding(NamedTuple):
    """One thing that is wrong, or worth knowing. ``pointer`` is a JSON pointer into the manifest of ``tool``."""

    tool: str
    pointer: str
    message: str
    severity: str = "error"  # or "warning"


def validate_manifest(document: dict[str, Any], tool: str) -> list[PublicationFinding]:
    """What is wrong with a manifest; empty when it is valid."""
    return [PublicationFinding(tool, pointer, message) for pointer, message in _look(document, manifest_schema(), "")]


def _look(value: Any, schema: dict[str, Any], at: str) -> Found:
    kind = schema.get("type")
    if kind is not None and not (
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    ):
        yield at, f"It must be {'an' if kind[0] in 'aio' else 'a'} {kind}."
        return
    for keyword, wanted in schema.items():
        if keyword != "type" and keyword not in _SAY_NOTHING:
            yield from _KEYWORDS[keyword](value, wanted, schema, at)


def _is(text: Callable[[Any, Any], str]) -> Callable[[Any, Any, dict[str, Any], str], Found]:
    """A keyword about a value as a whole; ``text`` says what is wrong, or nothing."""

    def look(value: Any, wanted: Any, _schema: dict[str, Any], at: str) -> Found:
        if said := text(value, wanted):
            yield at, said

    return look


@lru_cache(maxsize=128)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\$$", r"\\Z", text))  # in a schema $ is the very end


def _bounded(kind: type | tuple[type, ...], fits: Callable[[Any, Any], bool], said: str) -> Callable[..., Found]:
    return _is(lambda value, wanted: said.format(wanted) if isinstance(value, kind) and not fits(value, wanted) else "")


def _properties(value: Any, wanted: dict[str, Any], _schema: dict[str, Any], at: str) -> Found:
    for name, inner in wanted.items():
        if name in value:
            yield from _look(value[name], inner, f"{at}/{name}")


def _others(value: Any, wanted: bool | dict[str, Any], schema: dict[str, Any], at: str) -> Found:
    """Fields that the schema does not name: each as ``wanted`` says, or none."""
    known = schema.get("properties", {})
    for name in value if wanted is not True else ():
        if name in known:
            continue
        if isinstance(wanted, dict):
            yield from _look(value[name], wanted, f"{at}/{name}")
        else:
            yield f"{at}/{name}", f"There is no such field. The fields are {', '.join(known)}."


def _names(value: Any, wanted: dict[str, Any], _schema: dict[str, Any], at: str) -> Found:
    for name in value:
        yield from _look(name, wanted, f"{at}/{name}")


def _items(value: Any, wanted: dict[str, Any], schema: dict[str, Any], at: str) -> Found:
    first = len(schema.get("prefixItems", ()))
    for index, each in enumerate(value):
        if index >= first:
            yield from _look(each, wanted, f"{at}/{index}")


def _prefix_items(value: Any, wanted: list[dict[str, Any]], _schema: dict[str, Any], at: str) -> Found:
    for index, (each, inner) in enumerate(zip(value, wanted, strict=False)):
        yield from _look(each, inner, f"{at}/{index}")


def _one_of(value: Any, wanted: list[dict[str, Any]], _schema: dict[str, Any], at: str) -> Found:
    if sum(not list(_look(value, each, at)) for each in wanted) != 1:
        names = " or ".join(", ".join(each.get("required", ())) for each in wanted)
        yield at, f"It has either {names}."


def _dependent(value: Any, wanted: dict[str, list[str]], _schema: dict[str, Any], at: str) -> Found:
    for name, needed in wanted.items():
        for other in needed if name in value else ():
            if other not in value:
                yield at, f"{name} needs {other}."


def _required(value: Any, wanted: list[str], _schema: dict[str, Any], at: str) -> Found:
    for name in wanted:
        if name not in value:
            yield at, f"{name} is missing."


def _unique(value: Any, wanted: bool) -> str:
    return "No entry stands twice." if wanted and len({repr(each) for each in value}) < len(value) else ""


_KEYWORDS: dict[str, Callable[[Any, Any, dict[str, Any], str], Found]] = {
    "const": _is(lambda value, wanted: "" if value == wanted else f"It must be {wanted!r}."),
    "enum": _is(lambda value, wanted: "" if value in wanted else f"It must be one of {', '.join(map(str, wanted))}."),
    "pattern": _bounded(str, lambda value, wanted: bool(_pattern(wanted).search(value)), "It must have the form {}"),
    "minLength": _bounded(str, lambda value, wanted: len(value) >= wanted, "It has at least {} characters."),
    "maxLength": _bounded(str, lambda value, wanted: len(value) <= wanted, "It has at most {} characters."),
    "minimum": _bounded((int, float), lambda value, wanted: value >= wanted, "It is at least {}."),
    "maximum": _bounded((int, float), lambda value, wanted: value <= wanted, "It is at most {}."),
    "minItems": _bounded((list, tuple), lambda value, wanted: len(value) >= wanted, "It has at least {} entries."),
    "maxItems": _bounded((list, tuple), lambda value, wanted: len(value) <= wanted, "It has at most {} entries."),
    "minProperties": _bounded(dict, lambda value, wanted: len(value) >= wanted, "It has at least {} fields."),
    "maxProperties": _bounded(dict, lambda value, wanted: len(value) <= wanted, "It has at most {} fields."),
    "uniqueItems": _is(_unique),
    "required": _required,
    "properties": _properties,
    "additionalProperties": _others,
    "propertyNames": _names,
    "items": _items,
    "prefixItems": _prefix_items,
    "oneOf": _one_of,
    "dependentRequired": _dependent,
}
