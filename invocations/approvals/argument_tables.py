"""Argument tables: every argument of a call as one table, with what the schema says of each.

A tree hides what is folded. Who decides reads all that was sent, line by line, and what was left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ROWS = 200
MAX_SHOWN = 1000
MAX_DEPTH = 8
STEP = " › "


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One value of a call, as text; of an argument that was left out its default, or nothing."""

    name: str
    value: str
    help: str = ""
    is_missing: bool = False
    is_text: bool = True


@dataclass(frozen=True, slots=True)
class ArgumentTable:
    """What was sent, and what was left out; ``has_more``: not all of it is in ``given``."""

    given: list[ArgumentRow] = field(default_factory=list)
    missing: list[ArgumentRow] = field(default_factory=list)
    has_more: bool = False


def build_argument_table(arguments: Any, schema: dict[str, Any] | None) -> ArgumentTable:
    """``arguments``: masked already."""
    table = ArgumentTable()
    for row in _walk("", arguments, schema or {}, MAX_DEPTH):
        if row.is_missing:
            # What was left out is bounded by the schema; there may still be something that was sent behind it.
            table.missing.extend([row] if len(table.missing) < MAX_ROWS else [])
        elif len(table.given) == MAX_ROWS:
            return replace(table, has_more=True)
        else:
            table.given.append(row)
    return table


def _walk(name: str, value: Any, schema: dict[str, Any], depth: int) -> Iterator[ArgumentRow]:
    said = str(schema.get("description") or schema.get("title") or "")
    if isinstance(value, dict) and depth:
        if name and not value:
            yield ArgumentRow(name, _text(value), said, is_text=False)
        properties = schema.get("properties", {})
        for key, child in sorted(value.items(), key=lambda item: _place(properties, item[0])):
            yield from _walk(_join(name, key), child, _schema(properties.get(key)), depth - 1)
        for key, part in properties.items():
            if key not in value:
                yield _missing(_join(name, key), _schema(part))
    elif isinstance(value, list) and value and depth and any(isinstance(each, dict | list) for each in value):
        entries = _schema(schema.get("items"))
        for place, child in enumerate(value, start=1):
            yield from _walk(_join(name, str(place)), child, entries, depth - 1)
    elif name:
        yield ArgumentRow(name, _text(value), said, is_text=isinstance(value, str))


def _place(properties: dict[str, Any], key: str) -> int:
    """In the order in which the author wrote them down; what the schema does not know comes last."""
    names = list(properties)
    return names.index(key) if key in properties else len(names)


def _missing(name: str, schema: dict[str, Any]) -> ArgumentRow:
    default = schema.get("default")
    said = str(schema.get("description") or schema.get("title") or "")
    return ArgumentRow(name, "" if default is None else _text(default), said, is_missing=True)


def _schema(part: Any) -> dict[str, Any]:
    return part if isinstance(part, dict) else {}


def _join(name: str, key: str) -> str:
    return f"{name}{STEP}{key}" if name else key


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
