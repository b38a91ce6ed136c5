"""Diffs: what is different between two documents, line by line and word by word.

The diff is made on the server, so that it needs no script and cannot freeze a browser. Every invisible or
direction-changing character becomes a visible chip: what the reviewer sees is what the agent reads.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_LINES = 1500
"""Beyond this many shown lines the reader is sent to the raw document (argo-cd #16561: big diffs hang a browser)."""

LIKENESS = 0.35
"""Two lines less alike than this count as one removed and one added: word marks would only be noise."""

# Soft hyphen, joiners and fillers, variation selectors, bidi controls and isolates, tag characters, C0 and C1 controls.
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
EMPTY = SafeString("")
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")

Kind = Literal["context", "add", "delete", "gap"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. ``hidden`` counts the unchanged lines that a gap stands for."""

    kind: Kind
    old: int | None = None
    new: int | None = None
    text: SafeString = EMPTY
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Diff:
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    truncated: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def draw_invisible(text: str) -> SafeString:
    """``text`` for HTML, with every invisible character drawn as a ``U+XXXX`` chip that names it."""

    def chip(match: re.Match[str]) -> str:
        char = match.group()
        name = unicodedata.name(char, "unnamed character")
        return format_html('<b class="cp" title="{}">U+{}</b>', name, f"{ord(char):04X}")

    # escape() leaves these characters alone, so chips can be put in afterwards; they are escaped on their own
    return mark_safe(INVISIBLE.sub(chip, str(escape(text))))  # noqa: S308


def dump_lines(document: Any) -> list[str]:
    """The lines in which people read a JSON document."""
    return json.dumps(document, indent=2, ensure_ascii=False).split("\n")


def diff_documents(old: Any, new: Any, *, context: int = 3) -> Diff:
    """The diff of two JSON documents; ``old`` may be ``None``, and then every line is new."""
    return diff_lines([] if old is None else dump_lines(old), dump_lines(new), context=context)


def diff_lines(old: Sequence[str], new: Sequence[str], *, context: int = 3) -> Diff:
    # a trailing comma is punctuation of JSON, not a change
    matcher = difflib.SequenceMatcher(
        None, [line.rstrip(",") for line in old], [line.rstrip(",") for line in new], autojunk=False
    )
    lines: list[DiffLine] = []
    shown_until = 0
    for group in matcher.get_grouped_opcodes(context):
        if group[0][1] > shown_until:
            lines.append(DiffLine("gap", hidden=group[0][1] - shown_until))
        for opcode in group:
            lines.extend(_lines_of(opcode, old, new))
        shown_until = group[-1][2]
    if lines and shown_until < len(old):
        lines.append(DiffLine("gap", hidden=len(old) - shown_until))
    return Diff(
        lines=tuple(lines[:MAX_LINES]),
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "delete" for line in lines),
        truncated=len(lines) > MAX_LINES,
    )


def _lines_of(opcode: tuple[str, int, int, int, int], old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    tag, i1, i2, j1, j2 = opcode
    if tag == "equal":
        for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
            yield DiffLine("context", i + 1, j + 1, draw_invisible(new[j]))
        return
    pairs = [_mark_words(old[i], new[j]) for i, j in zip(range(i1, i2), range(j1, j2), strict=False)]
    for k, i in enumerate(range(i1, i2)):
        yield DiffLine("delete", old=i + 1, text=pairs[k][0] if k < len(pairs) else draw_invisible(old[i]))
    for k, j in enumerate(range(j1, j2)):
        yield DiffLine("add", new=j + 1, text=pairs[k][1] if k < len(pairs) else draw_invisible(new[j]))


def _mark_words(old: str, new: str) -> tuple[SafeString, SafeString]:
    """Both lines, with the words that differ in ``<mark>``."""
    old_words, new_words = TOKEN.findall(old), TOKEN.findall(new)
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    if matcher.ratio() < LIKENESS:
        return draw_invisible(old), draw_invisible(new)
    old_html = new_html = EMPTY
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        old_part, new_part = draw_invisible("".join(old_words[i1:i2])), draw_invisible("".join(new_words[j1:j2]))
        old_html += old_part if tag == "equal" or not old_part else format_html("<mark>{}</mark>", old_part)
        new_html += new_part if tag == "equal" or not new_part else format_html("<mark>{}</mark>", new_part)
    return old_html, new_html
