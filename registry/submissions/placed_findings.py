"""Placed findings: what is wrong with a file, at the line where it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.checks.findings import escape_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INDENT = "  "
MAX_SHOWN_LINES = 4_000
LINES_AROUND = 3  # each line with a finding, where a file has more lines than a page shows


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """``line``: from 1; 0 for what is about the whole. ``file``: the name of what it is in."""

    file: str
    line: int
    message: str
    fix: str = ""
    severity: str = "error"
    pointer: str = ""
    rule: str = ""

    @property
    def is_error(self) -> bool:
        return self.severity == "error"


@dataclass(frozen=True, slots=True)
class SourceLine:
    number: int
    text: str
    findings: list[PlacedFinding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MarkedSource:
    """A file with what was found at its lines. ``id``: of its part of the page; ``is_cut``: only lines around findings are in it."""

    id: str
    name: str
    lines: list[SourceLine]
    is_cut: bool = False


def mark_source(id: str, name: str, text: str, findings: Iterable[PlacedFinding]) -> MarkedSource:
    by_line: dict[int, list[PlacedFinding]] = {}
    for each in findings:
        if each.file == name and each.line:
            by_line.setdefault(each.line, []).append(each)
    lines = text.removesuffix("\n").split("\n")
    is_cut = len(lines) > MAX_SHOWN_LINES
    shown = _list_lines_around(by_line, len(lines)) if is_cut else range(1, len(lines) + 1)
    return MarkedSource(id, name, [SourceLine(n, lines[n - 1], by_line.get(n, [])) for n in shown], is_cut)


def _list_lines_around(marked: Iterable[int], last: int) -> list[int]:
    near = {n for at in marked for n in range(max(1, at - LINES_AROUND), min(last, at + LINES_AROUND) + 1)}
    return sorted(near)[:MAX_SHOWN_LINES]


def write_document(document: Any) -> tuple[str, dict[str, int]]:
    """A document as JSON text, and the line at which what each pointer names begins."""
    lines: list[str] = []
    places: dict[str, int] = {}
    _write(document, "", "", "", lines, places)
    return "\n".join(lines), places


def _write(value: Any, lead: str, indent: str, pointer: str, lines: list[str], places: dict[str, int]) -> None:
    """``lead``: what stands before the value on its line."""
    places[pointer] = len(lines) + 1
    parts: list[tuple[str, str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{_dump(name)}: ", escape_token(name), each) for name, each in value.items()]
    elif isinstance(value, list):
        parts = [("", str(index), each) for index, each in enumerate(value)]
    if not parts:
        lines.append(f"{lead}{_dump(value)}")
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines.append(f"{lead}{opening}")
    for place, (name, token, each) in enumerate(parts, 1):
        inner = indent + INDENT
        _write(each, inner + name, inner, f"{pointer}/{token}", lines, places)
        if place < len(parts):
            lines[-1] += ","
    lines.append(f"{indent}{closing}")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def find_line(pointer: str, places: Mapping[str, int]) -> int:
    """Of what the pointer names, or of the nearest around it."""
    while pointer not in places and pointer:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer, 0)
