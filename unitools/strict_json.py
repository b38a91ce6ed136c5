"""Strict JSON: the value of a document that every reader understands alike, or why it is refused.

Python's own reader takes more than JSON: NaN, a key given twice (the last wins, elsewhere the first), numbers of any size, halves of
surrogate pairs; it dies of deep nesting. Here such a document is refused with a :class:`JsonRefused`, whose code a caller turns into
a sentence of its own.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WHY = {
    "too_large": "this is too large.",
    "too_deep": "this is nested too deep.",
    "bad_encoding": "this is not UTF-8.",
    "invalid_json": "this is not JSON.",
    "not_a_number": "NaN and Infinity are not in JSON. Leave the value out or write null.",
    "huge_number": "a number is too large to be read alike everywhere. Write it as a string.",
    "duplicate_key": "an object has the same key twice, so it is not clear which value is meant.",
    "bad_text": "half of a surrogate pair (such as \\ud83d alone) is no character.",
    "nul": "a text holds a NUL character.",
}

# A string, or what is left of one at the end of the text. Possessive: there is nothing to go back to.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class JsonRefused(ValueError):
    """JSON that is not taken. ``code``: a key of WHY. ``subject``: the key that is there twice, or the word that is no number.
    ``syntax``: what the parser says of a document that is no JSON, with the place."""

    def __init__(
        self, code: str, message: str = "", *, subject: str = "", syntax: json.JSONDecodeError | None = None
    ) -> None:
        super().__init__(message or WHY[code])
        self.code, self.subject, self.syntax = code, subject, syntax


def measure_depth(raw: bytes) -> int:
    """Deepest nesting of brackets outside strings, before anything parses the text.

    Linear in its length and without recursion, so that a hostile text cannot overflow the stack of the parser behind it.
    """
    depth = deepest = 0
    for bracket in _STRINGS.sub(b"", raw).translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def read_fraction(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise JsonRefused("huge_number")
    return number


def build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        once: set[str] = set()
        for key, _ in pairs:
            if key in once:
                raise JsonRefused("duplicate_key", subject=key)
            once.add(key)
    return held


def iter_texts(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys too."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from each
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def check_characters(value: Any) -> None:
    """Every string of a JSON value can be written as UTF-8."""
    for text in iter_texts(value):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise JsonRefused("bad_text") from None


def _refuse_constant(text: str) -> NoReturn:
    raise JsonRefused("not_a_number", subject=text)


class JsonReader:
    """Reads documents by one set of rules: ``read_whole`` and ``read_fraction`` make numbers of their digits, or refuse them.

    A text may hold NUL characters unless ``takes_nul`` says otherwise: no database keeps them.
    """

    def __init__(
        self,
        *,
        read_whole: Callable[[str], int] = int,
        read_fraction: Callable[[str], float] = read_fraction,
        takes_nul: bool = True,
    ) -> None:
        self.takes_nul = takes_nul
        self._decoder = json.JSONDecoder(
            object_pairs_hook=build_unique_object,
            parse_constant=_refuse_constant,
            parse_int=read_whole,
            parse_float=read_fraction,
        )

    def read(self, document: str | bytes, *, max_bytes: int | None = None, max_depth: int | None = None) -> Any:
        """The value of a document. No step can be made expensive by what stands in it: size, depth, UTF-8, then JSON.

        Args:
            max_bytes: of the document in UTF-8.
            max_depth: how many brackets may be open at once; without it as many as the parser's stack holds.

        Raises:
            JsonRefused: with the first thing that is wrong.
        """
        raw = document if isinstance(document, bytes) else document.encode("utf-8", "surrogatepass")
        if max_bytes is not None and len(raw) > max_bytes:
            raise JsonRefused("too_large", f"this is larger than {max_bytes} bytes.")
        if max_depth is not None and measure_depth(raw) > max_depth:
            raise JsonRefused("too_deep", f"this is nested more than {max_depth} deep.")
        try:
            text = document.decode() if isinstance(document, bytes) else document
        except UnicodeDecodeError:
            raise JsonRefused("bad_encoding") from None
        value = self._decode(text)
        # An escape alone brings in what UTF-8 does not have.
        if "\\u" in text or (text is document and not text.isascii()):
            check_characters(value)
            if not self.takes_nul and any("\0" in each for each in iter_texts(value)):
                raise JsonRefused("nul")
        return value

    def _decode(self, text: str) -> Any:
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            message = f"this is not JSON: {error.msg} at character {error.pos}."
            raise JsonRefused("invalid_json", message, syntax=error) from None
        except RecursionError:
            raise JsonRefused("too_deep") from None
        except JsonRefused:
            raise
        except ValueError:  # a whole number of thousands of digits
            raise JsonRefused("huge_number") from None


STRICT = JsonReader()
