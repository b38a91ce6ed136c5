"""Docstrings: what one says of a function and of each parameter.

Google's, NumPy's and Sphinx's styles are read, and 参数 as Google's. What nobody meant for a caller (parameters, results, errors)
is left out of the description; all other text stays.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_PARAMETERS = (
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "参数",
)
_LEFT_OUT = ("returns", "return", "raises", "yields", "attributes", "返回", "返回值", "异常")
_HEADING = re.compile(rf"({'|'.join((*_PARAMETERS, *_LEFT_OUT))})\s*[:：]?", re.IGNORECASE)
_RULE = re.compile(r"-{3,}")
_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*[:：]\s*(?P<text>.*)")
_NUMPY_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?::.*)?")
_FIELD = re.compile(r":(?P<kind>\w+)(?:\s+(?P<words>[^:]*))?:\s*(?P<text>.*)")
_GIVEN = ("param", "parameter", "arg", "argument", "key", "keyword")
_FIELDS = (*_GIVEN, "type", "raises", "raise", "except", "return", "returns", "rtype")


class Docs(NamedTuple):
    """``parameters``: name → text in one line."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docs:
    """Never fails: what is of no known style is part of the description."""
    told = _DocstringReader(inspect.cleandoc(text or "").splitlines())
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(told.description)).strip()
    return Docs(description, {name: " ".join(said).strip() for name, said in told.parameters.items()})


class _DocstringReader:
    def __init__(self, lines: list[str]) -> None:
        self.description: list[str] = []
        self.parameters: dict[str, list[str]] = {}
        index = 0
        while index < len(lines):
            index = self._field(lines, index) or self._section(lines, index) or self._text(lines, index)

    def _text(self, lines: list[str], index: int) -> int:
        self.description.append(lines[index])
        return index + 1

    def _field(self, lines: list[str], index: int) -> int:
        """Sphinx; 0 when it is none."""
        found = _FIELD.match(lines[index])
        if found is None or found["kind"] not in _FIELDS:
            return 0
        end = _end_of_block(lines, index + 1)
        if found["kind"] in _GIVEN and found["words"]:
            self.parameters[found["words"].split()[-1]] = [found["text"], *map(str.strip, lines[index + 1 : end])]
        return end

    def _section(self, lines: list[str], index: int) -> int:
        """Google or NumPy; 0 when it is none."""
        found = _HEADING.fullmatch(lines[index].rstrip())
        if found is None:
            return 0
        ruled = index + 1 < len(lines) and bool(_RULE.fullmatch(lines[index + 1].strip()))
        if not ruled and not lines[index].rstrip().endswith((":", "：")):
            return 0
        start = index + 1 + ruled
        end = _end_of_numpy(lines, start) if ruled else _end_of_block(lines, start)
        if found[1].lower() in _PARAMETERS:
            self._items(lines[start:end], _NUMPY_ITEM if ruled else _ITEM)
        return end

    def _items(self, lines: list[str], pattern: re.Pattern[str]) -> None:
        depth = min((_indent(line) for line in lines if line.strip()), default=0)
        said: list[str] = []
        for line in lines:
            found = pattern.fullmatch(line.strip()) if _indent(line) == depth else None
            if found is not None:
                said = self.parameters.setdefault(found["name"], [])
                said.append(found.groupdict().get("text") or "")
            elif line.strip():
                said.append(line.strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_block(lines: list[str], start: int) -> int:
    """Where the indented lines end; an empty one belongs to them if an indented one follows."""
    end = start
    for index in range(start, len(lines)):
        if lines[index].strip():
            if not _indent(lines[index]):
                break
            end = index + 1
    return end


def _end_of_numpy(lines: list[str], start: int) -> int:
    """At the next heading with a rule below it."""
    for index in range(start, len(lines) - 1):
        if lines[index].strip() and _RULE.fullmatch(lines[index + 1].strip()):
            return index
    return len(lines)
