"""What may be said about arguments and results without saying what they are?"""

from __future__ import annotations

from typing import Any

MAX_NAMES = 40


def shape_of(value: Any) -> Any:
    """Top-level names with type and size; no value of the call is in it. Names that no schema chose are cut."""
    if not isinstance(value, dict):
        return _kind(value)
    return {str(name)[:64]: _kind(each) for name, each in list(value.items())[:MAX_NAMES]}


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
