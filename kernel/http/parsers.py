"""Parsers: how a request body is read, so that what is checked is what was sent.

Stricter than the standard parser: a duplicate key, NaN or a lone surrogate is refused instead of being changed silently.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from rest_framework.parsers import BaseParser

from kernel.json_depth import measure_depth
from kernel.problems import Malformed, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 64


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"The key {twice!r} appears twice in one object.")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON.")


def read_json(raw: bytes) -> Any:
    """The value of a JSON document, or :class:`Malformed` with the place of the mistake."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raise Malformed("The body begins with a byte order mark.", remedy="Send UTF-8 without a byte order mark.")
    if measure_depth(raw) > MAX_DEPTH:
        raise Malformed(f"The body is nested deeper than {MAX_DEPTH} levels.")
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeError as error:
        raise Malformed("The body is not valid UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise Malformed(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            details={"line": error.lineno, "column": error.colno},
        ) from error
    except ValueError as error:
        raise Malformed(f"The body is not JSON that can be read safely: {error}") from error
    if "\\u0000" in text and holds_nul(value):
        raise Malformed("The body holds a NUL character, which cannot be stored.")
    return value


def holds_nul(value: Any) -> bool:
    """Whether a text within it holds a NUL character, which no database takes."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str) and "\x00" in each:
            return True
        if isinstance(each, dict):
            stack += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            stack += each
    return False


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = stream.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            raise TooLarge(f"The body is larger than {MAX_BODY_BYTES:,} bytes.", details={"max_bytes": MAX_BODY_BYTES})
        return read_json(raw)
