"""Parsers: how a request body is read, so that what is checked is what was sent.

Stricter than the standard parser: a duplicate key, NaN or a lone surrogate is refused instead of being changed silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.parsers import BaseParser

from kernel.problems import Malformed, TooLarge
from unitools.strict_json import JsonReader, JsonRefused, iter_texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 64


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


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = stream.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            raise TooLarge(f"The body is larger than {MAX_BODY_BYTES:,} bytes.", details={"max_bytes": MAX_BODY_BYTES})
        return read_json(raw)
