"""Pointers: the places in a JSON value that a pointer with ``*`` names, and how a value is changed there.

RFC 6901, and ``*`` for every entry of a list or object. An object's own name ``*`` cannot be pointed at alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ANY = "*"


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """``ValueError`` when it is no pointer."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer[:80]!r} is not a JSON pointer: it begins with a slash.")
    parts = pointer.split("/")[1:]
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        raise ValueError(f"{pointer[:80]!r} is not a JSON pointer: ~ stands only in ~0 and ~1.")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


@dataclass(slots=True)
class PointerVisit:
    """How many places were found, and how many were looked for in vain."""

    found: int = 0
    missing: int = 0

    def change(self, value: Any, parts: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
        """The value with each named place changed; nothing is changed in place."""
        if not parts:
            self.found += 1
            return change(value)
        head, rest = parts[0], parts[1:]
        if isinstance(value, dict):
            if head == ANY:
                return {name: self.change(each, rest, change) for name, each in value.items()}
            if head in value:
                return value | {head: self.change(value[head], rest, change)}
        if isinstance(value, list):
            if head == ANY:
                return [self.change(each, rest, change) for each in value]
            if head.isascii() and head.isdigit() and (head == "0" or head[0] != "0") and int(head) < len(value):
                index = int(head)
                return [*value[:index], self.change(value[index], rest, change), *value[index + 1 :]]
        self.missing += 1
        return value
