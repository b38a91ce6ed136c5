"""Strict reading: what bytes say, if they may say it in one way only.

Decoders that refuse what lenient ones repair: a second spelling of the same content is a place to hide a change.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from .problems import MalformedEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def decode_base64(text: str, *, where: str) -> bytes:
    """Standard base64 with padding: no white space, no other alphabet, no bits left over."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError as error:
        raise MalformedEvidence(f"{where} is not base64.") from error
    if base64.b64encode(data).decode() != text:
        raise MalformedEvidence(f"{where} is not canonical base64.")
    return data


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decode_decimal(text: str, *, where: str) -> int:
    """A number below 2^63 as people write it: digits without a sign and without leading zeros."""
    if not _DECIMAL.fullmatch(text) or int(text) >= 1 << 63:
        raise MalformedEvidence(f"{where} is not a decimal number.")
    return int(text)


def decode_text(data: bytes, *, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedEvidence(f"{where} is not UTF-8.") from error


def decode_json(data: bytes, *, where: str) -> Any:
    """JSON without duplicate keys, NaN, infinities and halves of surrogate pairs."""
    text = decode_text(data, where=where)

    def once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise MalformedEvidence(f"{where} has the key {key!r} twice.")
            found[key] = value
        return found

    def no_constant(name: str) -> NoReturn:
        raise MalformedEvidence(f"{where} holds {name}, which is not JSON.")

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except MalformedEvidence:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedEvidence(f"{where} is not JSON.") from error
