"""Output values: where in what a tool returned something is that JSON cannot hold."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_DEEPEST = 64
_NOT_FINITE = "JSON has neither NaN nor Infinity"
_NOT_UTF8 = "These bytes are no text. Declare bytes, then they are base64"
_HALF = "Half of a surrogate pair is no character"
_UNKNOWN = "A {kind} is not in JSON"
_TOO_DEEP = "This is nested too deep, or holds itself"


def find_no_json(value: Any, known: Collection[str]) -> list[dict[str, Any]]:
    """The first place, as a finding; keys that are not ``known`` may be data, so they are ``*``. Empty where none is plain."""
    found = next(_walk(value, [], known), None)
    return [{"loc": found[0], "code": "no_json", "msg": found[1]}] if found else []


def _walk(value: Any, loc: list[Any], known: Collection[str]) -> Iterator[tuple[list[Any], str]]:
    if len(loc) > _DEEPEST:
        yield loc[:3], _TOO_DEEP
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _walk(getattr(value, field.name), [*loc, field.name], known)
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from _walk(held, [*loc, key if key in known else "*"], known)
    elif isinstance(value, (list, tuple)):
        for index, held in enumerate(value):
            yield from _walk(held, [*loc, index], known)
    elif why := _explain(value):
        yield loc, why


def _explain(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isfinite(value) else _NOT_FINITE
    if isinstance(value, (bytes, bytearray)):
        try:
            value.decode()
        except UnicodeDecodeError:
            return _NOT_UTF8
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return _HALF
    return _UNKNOWN.format(kind=type(value).__name__) if type(value) is object or callable(value) else ""
