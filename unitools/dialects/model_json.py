"""Model JSON: the bounds of JSON that a model or its provider wrote, for text and for what an SDK had parsed already."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unitools.dialects.errors import NotJson, ResponseTooLarge
from unitools.strict_json import JsonReader, JsonRefused, build_unique_object, check_characters

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_RESPONSE = 8 * MAX_BYTES
MAX_RESPONSE_DEPTH = MAX_DEPTH + 16  # what stands around the arguments
SMALLEST, LARGEST = -(2**63), 2**64 - 1
DIGITS = 20  # of the largest whole number

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


def find_bracket_end(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``; 0 if none does. Reads no further."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[1] == "":
            return 0
        if token[1] is None:
            depth += 1 if token[2] else -1
            if not depth:
                return token.end()
    return 0


def read_whole(text: str) -> int:
    if len(text) > DIGITS + text.startswith("-") or not SMALLEST <= (number := int(text)) <= LARGEST:
        raise JsonRefused("huge_number")
    return number


_READER = JsonReader(read_whole=read_whole)


def load_json(text: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a text that is one strict JSON document; :class:`JsonRefused` says why it is none."""
    return _READER.read(text, max_bytes=max_bytes, max_depth=max_depth)


def load_response(text: str, what: str) -> Any:
    """The value of a provider's response, or of a part of it (``what``).

    Raises:
        ResponseTooLarge: it is larger or nested deeper than is read.
        NotJson: it is no JSON, or not as every reader understands it.
    """
    try:
        return load_json(text, max_bytes=MAX_RESPONSE, max_depth=MAX_RESPONSE_DEPTH)
    except JsonRefused as refusal:
        error = ResponseTooLarge if refusal.code in {"too_large", "too_deep"} else NotJson
        raise error(f"{what} cannot be read: {refusal}") from None


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
            raise JsonRefused("too_deep", f"this is nested more than {MAX_DEPTH} deep.")
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
            raise JsonRefused("too_large", f"this is larger than {MAX_BYTES} bytes.")


def copy_json(value: Any) -> Any:
    """The same JSON value as dicts, lists and scalars of its own, from what an SDK had parsed already.

    Raises:
        JsonRefused: with the bounds that hold for text. A value that contains itself is too deep.
    """
    return _Copy().of(value)
