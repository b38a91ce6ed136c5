"""Parsers: how a request body is read, so that what is checked is what was sent.

Stricter than the standard parser: a duplicate key, NaN or a lone surrogate is refused instead of being changed silently.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rest_framework.parsers import BaseParser

from kernel.problems import Malformed, TooLarge
from unitools.strict_json import JsonReader, JsonRefused, iter_texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

MAX_BODY_BYTES = 1024 * 1024
MAX_WIDE_BYTES = 15 * 1024 * 1024  # 10 MiB in base64, and the rest
MAX_DEPTH = 64
_BASE64 = re.compile(rb'"(?:data:[A-Za-z0-9.+/\\-]{1,100};base64,)?[A-Za-z0-9+/=\\]{4096,}+"')  # a slash may be escaped


_READER = JsonReader(takes_nul=False)


def read_json(raw: bytes) -> Any:
    """The value of a JSON document, or :class:`Malformed` with the place of the mistake."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raise Malformed("The body begins with a byte order mark.", remedy="Send UTF-8 without a byte order mark.")
    try:
        return _READER.read(raw, max_depth=MAX_DEPTH)
    except JsonRefused as refusal:
        raise _build_problem(refusal) from refusal


def _build_problem(refusal: JsonRefused) -> Malformed:
    if syntax := refusal.syntax:
        place = {"line": syntax.lineno, "column": syntax.colno}
        return Malformed(
            f"The body is not JSON: {syntax.msg} at line {syntax.lineno}, column {syntax.colno}.", details=place
        )
    match refusal.code:
        case "too_deep":
            return Malformed(f"The body is nested deeper than {MAX_DEPTH} levels.")
        case "bad_encoding" | "bad_text":
            return Malformed("The body is not valid UTF-8 text.")
        case "nul":
            return Malformed("The body holds a NUL character, which cannot be stored.")
        case "duplicate_key":
            why = f"The key {refusal.subject!r} appears twice in one object."
        case "not_a_number":
            why = f"{refusal.subject} is not JSON."
        case _:
            why = "A number is too large."
    return Malformed(f"The body is not JSON that can be read safely: {why}")


def holds_nul(value: Any) -> bool:
    """Whether a text within it holds a NUL character, which no database takes."""
    return any("\0" in text for text in iter_texts(value))


def make_storable(text: str) -> str:
    """The text as every database takes it: NUL characters and halves of surrogate pairs are replaced, pairs become one character."""
    whole = text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


class StrictJSONParser(BaseParser):
    media_type = "application/json"
    max_bytes = MAX_BODY_BYTES

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = stream.read(self.max_bytes + 1)
        if len(raw) > self.max_bytes:
            raise _build_too_large(self.max_bytes)
        if len(raw) > MAX_BODY_BYTES and len(raw) - measure_base64(raw) > MAX_BODY_BYTES:
            raise _build_too_large(MAX_BODY_BYTES)
        return read_json(raw)


class WideJSONParser(StrictJSONParser):
    """Takes files in base64 within a body, which beside them is no larger than others: reading a long text costs little."""

    max_bytes = MAX_WIDE_BYTES


def measure_base64(raw: bytes) -> int:
    """How much of a JSON text is long texts in base64, as they are or as data URLs."""
    if raw.count(b'"') > MAX_BODY_BYTES:  # these alone are too much
        return 0
    return sum(len(each[0]) for each in _BASE64.finditer(raw))


def _build_too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"The body is larger than {max_bytes:,} bytes.", details={"max_bytes": max_bytes})
