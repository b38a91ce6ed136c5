"""Value shape: what may be said about arguments and results without saying what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NAMES, MAX_NAME_CHARS = 40, 64


def describe_value_shape(value: Any, declared: Iterable[str]) -> Any:
    """Top-level names with type and size; no value of the call is in it.

    Only names that the tool's schema declares: others are the caller's own words. They are counted under ``*``.
    """
    if not isinstance(value, dict):
        return _kind(value)
    names = [name for name in declared if name in value and len(name) <= MAX_NAME_CHARS and name.isprintable()]
    shape = {name: _kind(value[name]) for name in names[:MAX_NAMES]}
    return shape | ({"*": f"{len(value) - len(shape)} more"} if len(value) > len(shape) else {})


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case int() | float():
            return "number"
        case str():
            return f"string({len(value)})"
        case list():
            return f"array({len(value)})"
        case dict():
            return f"object({len(value)})"
        case _:
            return type(value).__name__
