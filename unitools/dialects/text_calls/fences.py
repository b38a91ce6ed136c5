"""Fences: which places of a text stand in a fenced block of code, as CommonMark has it.

A fence is closed by one of the same character that is at least as long, with nothing behind it, in the same quotation (``>``) or list
item. What cannot be told from the lines alone counts as fenced: whether a block within a list or a quotation ended with it.
Blocks of HTML are not looked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What stands before a fence: indentation and quotation, then items of lists that begin in this line. The quantifiers are possessive.
_FENCE = re.compile(
    r"^(?P<before>[ \t>]*+)(?P<item>(?:(?:[-+*]|\d{1,9}[.)])[ \t][ \t>]*+)*+)"
    r"(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<after>[^\n]*+)$",
    re.MULTILINE,
)
_LONE_RETURN = re.compile(r"\r(?!\n)")  # ends a line too
_BLANK = " \t\r"
_UNINDENTED = ("", " ", "  ", "   ")


def list_fenced(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether each of these spans, in their order, begins in a block of code. What stands inside of a span opens and closes none."""
    text = _LONE_RETURN.sub("\n", text)
    lines = _FENCE.finditer(text)
    line = next(lines, None)
    opened: re.Match[str] | None = None
    in_doubt, read_to = False, 0
    found = []
    for start, end in spans:
        while line and line.start() < start:
            if line.start() < read_to:
                pass
            elif opened is None:
                opened = line
            elif not in_doubt and _may_close(line, opened):
                in_doubt = not _is_one_block(text, opened, line)
                opened = opened if in_doubt else None
            line = next(lines, None)
        found.append(opened is not None)
        read_to = max(read_to, end)
    return found


def _may_close(line: re.Match[str], opened: re.Match[str]) -> bool:
    is_fence = line["fence"].startswith(opened["fence"]) and not line["item"] and not line["after"].strip(_BLANK)
    return is_fence and (bool(opened["before"]) or line["before"] in _UNINDENTED)


def _is_one_block(text: str, opened: re.Match[str], closing: re.Match[str]) -> bool:
    """Whether the two stand in one place, and no line between them can have ended the quotation or the list that this is."""
    before = opened["before"]
    if opened["item"] or not before:
        return not opened["item"]
    between = text[opened.end() + 1 : closing.start()].split("\n")[:-1]
    return closing["before"] == before and all(
        line.startswith(before) or not (line.strip(_BLANK) or ">" in before) for line in between
    )
