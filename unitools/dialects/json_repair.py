"""JSON repair: what somebody meant who wrote JSON with a slip, and closed everything that was opened.

The reader takes a few slips more than JSON has, each with one meaning. It never adds an end: every string, list and object must be
closed in the text itself. So the beginning of a JSON text is refused here as it is by the strict reader: up to where it stops both
read the same tokens, and the first bracket is still open there. The slips: a fence around, a byte order mark, comments, a comma
before a closing bracket, single quotes, keys without quotes, True, False and None, line breaks and tabs inside strings, and of the
backslashes that JSON does not know ``\\'``, ``\\d``, ``\\w``, ``\\s`` and their capitals.
"""

from __future__ import annotations

import re
from typing import Any

from unitools.dialects.model_json import MAX_DEPTH, read_whole
from unitools.strict_json import JsonRefused, build_unique_object, check_characters, read_fraction

MAX_CHARACTERS = 256 * 1024
MAX_FIXES = 20  # that are told

_FENCE = re.compile(r"```[A-Za-z0-9]*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_GAP = re.compile(r"[ \t\r\n]++")
_COMMENT = re.compile(r"//[^\n]*+\n|/\*.*?\*/", re.DOTALL)
_BARE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*+")
_WORD = re.compile(r"[A-Za-z]++")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*+))((?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?=[ \t\r\n,\]}/])")
_PLAIN = re.compile(r"[^\"'\\\x00-\x1f]++")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


def _joined(text: str) -> str:
    """Two halves of a surrogate pair, written as two escapes, are one character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class _JsonRepairer:
    """Recursive, and never deeper than the strict reader goes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.fixes: list[str] = []

    def fixed(self, what: str) -> None:
        if len(self.fixes) < MAX_FIXES:
            self.fixes.append(f"{what} at character {self.at}")

    def broken(self) -> JsonRefused:
        return JsonRefused("invalid_json", f"this is not JSON, nor clear from character {self.at} on.")

    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        while True:
            if gap := _GAP.match(self.text, self.at):
                self.at = gap.end()
            if self.here() != "/":
                return
            if not (comment := _COMMENT.match(self.text, self.at)):
                raise self.broken()
            self.fixed("a comment")
            self.at = comment.end()

    def value(self, depth: int) -> Any:
        match self.here():
            case "{" | "[" as bracket:
                if depth >= MAX_DEPTH:
                    raise JsonRefused("too_deep", f"this is nested more than {MAX_DEPTH} deep.")
                self.at += 1
                return self.object(depth + 1) if bracket == "{" else self.list(depth + 1)
            case '"' | "'":
                return self.string()
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return read_fraction(number[0]) if number[2] else read_whole(number[1])
        if not (word := _WORD.match(self.text, self.at)):
            raise self.broken()
        if word[0] in {"NaN", "Infinity"}:
            raise JsonRefused("not_a_number")
        if word[0] not in _WORDS:
            raise self.broken()
        if word[0][0].isupper():
            self.fixed("a word of Python")
        self.at = word.end()
        return _WORDS[word[0]]

    def another(self, closing: str, first: bool) -> bool:
        """Is there one more in this list or object? Moves to it, or past the closing bracket."""
        self.skip()
        if not first and self.here() == ",":
            self.at += 1
            self.skip()
            if self.here() == closing:
                self.fixed("a comma too many")
        elif not first and self.here() != closing:
            raise self.broken()
        if self.here() != closing:
            return True
        self.at += 1
        return False

    def list(self, depth: int) -> list[Any]:
        values: list[Any] = []
        while self.another("]", first=not values):
            values.append(self.value(depth))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        while self.another("}", first=not pairs):
            key = self.key()
            self.skip()
            if self.here() != ":":
                raise self.broken()
            self.at += 1
            self.skip()
            pairs.append((key, self.value(depth)))
        return build_unique_object(pairs)

    def key(self) -> str:
        if self.here() in {'"', "'"}:
            return self.string()
        if not (bare := _BARE_KEY.match(self.text, self.at)):
            raise self.broken()
        self.fixed("a key without quotes")
        self.at = bare.end()
        return bare[0]

    def string(self) -> str:
        quote = self.here()
        if quote == "'":
            self.fixed("single quotes")
        self.at += 1
        parts: list[str] = []
        while True:
            if plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            match self.here():
                case found if found == quote:
                    self.at += 1
                    return _joined("".join(parts))
                case '"' | "'" as other:
                    parts.append(other)
                case "\n" | "\r" | "\t" as control:
                    self.fixed("a line break or tab in a string")
                    parts.append(control)
                case "\\":
                    parts.append(self.escape())
                    continue
                case _:  # the end, or a control character
                    raise self.broken()
            self.at += 1

    def escape(self) -> str:
        escaped = self.text[self.at + 1 : self.at + 2]
        if escaped == "u":
            if not (digits := _HEX.match(self.text, self.at + 2)):
                raise self.broken()
            self.at = digits.end()
            return chr(int(digits[0], 16))
        if escaped in _ESCAPES:
            text = _ESCAPES[escaped]
        elif escaped == "'":
            self.fixed("an escaped single quote")
            text = escaped
        elif escaped and escaped in "dDwWsS":
            self.fixed("a backslash that was not doubled")
            text = "\\" + escaped
        else:
            raise self.broken()
        self.at += 2
        return text


def repair_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """The value of a complete text with slips, and what was done about them.

    Raises:
        JsonRefused: the text is not clear, not complete, or what the strict reader refuses as well.
    """
    fixes: list[str] = []
    if len(text) > MAX_CHARACTERS:
        raise JsonRefused("invalid_json")
    if text.startswith("\ufeff"):
        fixes.append("a byte order mark")
        text = text[1:]
    if (stripped := text.strip(" \t\r\n")).startswith("```"):
        if not (fence := _FENCE.fullmatch(stripped)):
            raise JsonRefused("invalid_json")
        fixes.append("a fence")
        text = fence[1]
    reader = _JsonRepairer(text)
    reader.skip()
    value = reader.value(0)
    reader.skip()
    if reader.at != len(text):
        raise reader.broken()
    check_characters(value)
    return value, (*fixes, *reader.fixes)
