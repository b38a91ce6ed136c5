"""Call sentence: how a manifest lets one call read to the person who decides on it.

::

    {lines: {quantity} × {sku}} to {destination.city}, {expected_total}[ {currency}]

``{city}`` is an argument and ``{destination.city}`` a property of one; ``{lines: …}`` says each entry of a list in the words after
the colon; what stands in ``[…]`` is left out where one of its arguments is. There is no way to name one entry of a list: a sentence
cannot say the first line of an order and keep still about the second.

A sentence is rendered as pieces, so that a page can tell what the author wrote from what the caller sent. Each value is bounded, and
whoever shows a sentence shows all arguments beside it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_VALUE = 80
MAX_ENTRIES = 5
MAX_CHARACTERS = 600  # of a sentence with its values
NOTHING = "—"
_NAME = r"[^\s{}\[\]:.]+"
_PATH = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_MARKS = re.compile(r"[{}\[\]]")
# What a terminal or a client would not show, or would show as something else.
_UNSEEN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_QUOTES = re.compile('["“”„‟«»〝〞〟＂]')
_NUMBER = re.compile(r"-?[0-9][0-9.,]*")

Path = tuple[str, ...]


class SentenceMalformed(ValueError):
    """What is written is no call sentence; the message says where."""


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class Argument:
    path: Path


@dataclass(frozen=True, slots=True)
class Entries:
    """A list, each entry of which is said in the same words."""

    path: Path
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """What is said only where all of its arguments are there."""

    parts: tuple[Part, ...]


Part = Words | Argument | Entries | Maybe


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """A piece of a rendered sentence: the author's words, or a value of the call."""

    text: str
    is_value: bool = False


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read(self, until: str = "", *, in_list: bool = False, in_maybe: bool = False) -> tuple[Part, ...]:
        parts: list[Part] = []
        while self.at < len(self.text):
            mark = _MARKS.search(self.text, self.at)
            end = mark.start() if mark else len(self.text)
            if end > self.at:
                parts.append(Words(self.text[self.at : end]))
            self.at = end + 1
            if mark is None:
                break
            if mark[0] == until:
                return tuple(parts)
            if mark[0] == "{":
                parts.append(self._read_argument(in_list=in_list))
            elif mark[0] == "[" and not in_maybe:
                parts.append(Maybe(self.read("]", in_list=in_list, in_maybe=True)))
            else:
                raise SentenceMalformed(
                    f"{mark[0]} at character {end + 1} has no counterpart, or stands in a place of its kind."
                )
        if until:
            raise SentenceMalformed(f"{until} is missing at the end.")
        return tuple(parts)

    def _read_argument(self, *, in_list: bool) -> Part:
        start = self.at
        found = _PATH.match(self.text, start)
        if found is None:
            raise SentenceMalformed(f"No argument is named at character {start + 1}.")
        path, self.at = tuple(found[0].split(".")), found.end()
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign == "}":
            return Argument(path)
        if sign == ":" and not in_list:
            while self.text[self.at : self.at + 1] == " ":
                self.at += 1
            return Entries(path, self.read("}", in_list=True))
        raise SentenceMalformed(
            f"{found[0]} at character {start + 1} is not followed by a brace, nor by words for a list."
        )


def parse_sentence(text: str) -> tuple[Part, ...]:
    """The parts of a call sentence. :class:`SentenceMalformed`."""
    return _Reader(text).read()


def find_value(arguments: Any, path: Path) -> Any:
    """What an argument is in a call; None where it is left out."""
    node = arguments
    for name in path:
        if not isinstance(node, dict) or name not in node:
            return None
        node = node[name]
    return node


def render_sentence(text: str, arguments: Any) -> list[SentencePiece]:
    """The sentence of one call, in pieces; nothing where ``text`` is empty or no sentence. ``arguments``: masked already."""
    try:
        parts = parse_sentence(text)
    except SentenceMalformed:
        return []
    pieces, left = [], MAX_CHARACTERS
    for piece in _render(parts, arguments):
        shown = (
            piece if len(piece.text) <= left else SentencePiece(piece.text[: max(0, left - 1)] + "…", piece.is_value)
        )
        pieces.append(shown)
        left -= len(shown.text)
        if shown is not piece or left <= 0:
            break
    return pieces


def format_plain(pieces: Iterable[SentencePiece]) -> str:
    """The sentence as one line of text, with whatever could not be seen in it named.

    Each value but a number stands in quotation marks, has none of its own, and no address that a client would make a link of: what
    the caller sent cannot be taken for the words of the author, or of whoever shows the sentence.
    """
    return "".join(
        _UNSEEN.sub(lambda sign: f"[U+{ord(sign[0]):04X}]", _quote(piece.text) if piece.is_value else piece.text)
        for piece in pieces
    )


def _quote(text: str) -> str:
    if text == NOTHING or _NUMBER.fullmatch(text):
        return text
    return f"“{_QUOTES.sub(chr(39), text).replace('://', ':[//]')}”"


def _render(parts: Iterable[Part], arguments: Any) -> Iterator[SentencePiece]:
    for part in parts:
        match part:
            case Words(text):
                yield SentencePiece(text)
            case Argument(path):
                yield SentencePiece(format_value(find_value(arguments, path)), is_value=True)
            case Entries(path, inner):
                yield from _render_entries(inner, find_value(arguments, path))
            case Maybe(inner):
                if not any(find_value(arguments, path) is None for path in _named(inner)):
                    yield from _render(inner, arguments)


def _render_entries(parts: tuple[Part, ...], entries: Any) -> Iterator[SentencePiece]:
    if not isinstance(entries, list) or not entries:
        yield SentencePiece(NOTHING if entries != [] else "0", is_value=True)
        return
    for place, entry in enumerate(entries[:MAX_ENTRIES]):
        if place:
            yield SentencePiece(", ")
        yield from _render(parts, entry)
    if len(entries) > MAX_ENTRIES:
        yield SentencePiece(f" + {len(entries) - MAX_ENTRIES:,} …")


def _named(parts: Iterable[Part]) -> Iterator[Path]:
    for part in parts:
        if isinstance(part, Argument | Entries):
            yield part.path


def format_value(value: Any) -> str:
    """A value as one short line."""
    if value is None:
        return NOTHING
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = re.sub(r"[ \t\r\n]+", " ", text).strip()
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
