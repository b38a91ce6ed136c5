"""Strict JSON: whether a text is JSON that every reader understands alike.

Python's own reader takes more than JSON: NaN, a key given twice (the last wins, elsewhere the first), numbers of any size; it dies
of deep nesting. Here such a text is refused with a `JsonRefused` that says why in one word and one sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
SMALLEST, LARGEST = -(2**63), 2**64 - 1
DIGITS = 20  # of the largest whole number

WHY = {
    "invalid_json": "this is not JSON.",
    "not_an_object": "this is no object with the tool's parameters as its keys.",
    "truncated": "this is cut.",
    "too_large": f"this is larger than {MAX_BYTES} bytes.",
    "too_deep": f"this is nested more than {MAX_DEPTH} deep.",
    "not_a_number": "NaN and Infinity are not in JSON. Leave the value out or write null.",
    "huge_number": "a number is too large to be read alike everywhere. Write it as a string.",
    "duplicate_key": "an object has the same key twice, so it is not clear which value is meant.",
    "bad_text": "half of a surrogate pair (such as \\ud83d alone) is no character.",
}


class JsonRefused(ValueError):
    """JSON that is not taken; `code` is a key of WHY."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or WHY[code])
        self.code = code


# One string (also one that is never closed), or one bracket. The quantifiers are possessive: no input makes it go back.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|([\[{])|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class BracketScan:
    """What the brackets and quotes of a text look like. It is exact for JSON and the beginning of it."""

    deepest: int
    open: bool  # a bracket or a string is not closed at the end
    end: int  # behind the bracket that closes the first one; 0 if none does


def scan_brackets(text: str, deepest: int = MAX_DEPTH) -> BracketScan:
    """Stops looking beyond `deepest`, and does not look for the end then."""
    depth = most = end = 0
    for token in _TOKEN.finditer(text):
        if token[2]:
            depth += 1
            most = max(most, depth)
            if most > deepest:
                return BracketScan(most, True, end)
        elif token[1] == "":
            return BracketScan(most, True, end)
        elif token[1] is None:
            depth -= 1
            if not depth and not end:
                end = token.end()
    return BracketScan(most, depth > 0, end)


def _no_constant(_: str) -> NoReturn:
    raise JsonRefused("not_a_number")


def read_whole(text: str) -> int:
    if len(text) > DIGITS + text.startswith("-") or not SMALLEST <= (number := int(text)) <= LARGEST:
        raise JsonRefused("huge_number")
    return number


def read_fraction(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise JsonRefused("huge_number")
    return number


def build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise JsonRefused("duplicate_key")
    return held


STRICT = json.JSONDecoder(
    object_pairs_hook=build_unique_object, parse_constant=_no_constant, parse_int=read_whole, parse_float=read_fraction
)


def load_json(text: str, *, most: int = MAX_BYTES, deepest: int = MAX_DEPTH) -> Any:
    """The value of a text that is one strict JSON document.

    Args:
        most: of the text's bytes in UTF-8.
        deepest: how many brackets may be open at once.

    Raises:
        Refused: what WHY lists, but not `not_an_object`.
    """
    if len(text) > most or (not text.isascii() and len(text.encode(errors="replace")) > most):
        raise JsonRefused("too_large", f"this is larger than {most} bytes.")
    if scan_brackets(text, deepest).deepest > deepest:
        raise JsonRefused("too_deep", f"this is nested more than {deepest} deep.")
    try:
        value = STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise JsonRefused("invalid_json", f"this is not JSON: {error.msg} at character {error.pos}.") from None
    if "\\u" in text or not text.isascii():
        check_characters(value)
    return value


def check_characters(value: Any) -> None:
    """Every string of a JSON value can be written as UTF-8."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise JsonRefused("bad_text") from None
    elif isinstance(value, dict):
        for key, held in value.items():
            check_characters(key)
            check_characters(held)
    elif isinstance(value, list):
        for held in value:
            check_characters(held)


def _basic(value: Any) -> Any:
    """What is nearly JSON as the type that JSON has: a subclass, a tuple, a mapping of an SDK."""
    for basic in (bool, str, int, float):
        if isinstance(value, basic):
            return basic(value)
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise JsonRefused("invalid_json", f"a {type(value).__name__} is not in JSON.")


class _Copy:
    """A copy made of plain dicts and lists, within the bounds that hold for text."""

    def __init__(self) -> None:
        self.left = MAX_BYTES

    def of(self, value: Any, depth: int = 0) -> Any:
        self.spend(2)
        kind = type(value)
        if kind is str:
            return self.of_text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if not SMALLEST <= value <= LARGEST:
                raise JsonRefused("huge_number")
            return value
        if kind is float:
            if not math.isfinite(value):
                raise JsonRefused("not_a_number")
            return value
        if kind is not list and kind is not dict:
            return self.of(_basic(value), depth)
        if depth >= MAX_DEPTH:
            raise JsonRefused("too_deep")
        if kind is list:
            return [self.of(held, depth + 1) for held in value]
        return build_unique_object([(self.of_text(key), self.of(held, depth + 1)) for key, held in value.items()])

    def of_text(self, text: object) -> str:
        if not isinstance(text, str):
            raise JsonRefused("invalid_json", "a key is no string.")
        self.spend(len(text))
        check_characters(text)
        return text

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise JsonRefused("too_large")


def copy_json(value: Any) -> Any:
    """The same JSON value as dicts, lists and scalars of its own, from what an SDK had parsed already.

    Raises:
        Refused: with the bounds that hold for text. A value that contains itself is too deep.
    """
    return _Copy().of(value)
