"""Tool names: what a tool is called in a dialect that does not take its name.

The map is made from the set of names and nothing else, so whoever reads a response can make it again. A character that the dialect
refuses becomes ``_``. A name that was too long, or lost more than punctuation, ends in eight digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from unitools.dialects.errors import NameCollision

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGITS = 8


@dataclass(frozen=True, slots=True)
class NameRule:
    """Which names a dialect takes."""

    refused: re.Pattern[str]
    longest: int
    first: re.Pattern[str] = re.compile("")  # how a name may begin

    def apply(self, name: str) -> str:
        said = self.refused.sub("_", name)
        if not self.first.match(said):
            said = f"_{said}"
        lost = not said or any(char.isalnum() and not char.isascii() for char in name)
        if lost or len(said) > self.longest:
            digits = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
            said = f"{said[: self.longest - _DIGITS - 1]}_{digits}"
        return said


_LETTERS = NameRule(re.compile(r"[^A-Za-z0-9_-]"), 64)
RULES = {
    "openai": _LETTERS,
    "openai-responses": _LETTERS,
    "anthropic": _LETTERS,  # 128 on its own API, 64 where others serve it
    "gemini": NameRule(re.compile(r"[^A-Za-z0-9_.-]"), 64, re.compile(r"[A-Za-z_]")),
    "mcp": NameRule(re.compile(r"[^A-Za-z0-9_.-]"), 128),
}  # all other dialects take every name


def derive_dialect_name(dialect: str, name: str) -> str:
    """The tool's name in the dialect; itself where the dialect takes it."""
    return RULES[dialect].apply(name) if dialect in RULES else name


def map_dialect_names(
    dialect: str, names: Iterable[str], *, on_collision: Literal["error", "skip"] = "error"
) -> dict[str, str]:
    """Name in the dialect → tool name, in the order given. Raises NameCollision where two tools would have one name; with "skip"
    neither of them has one, so that a call never reaches the wrong tool."""
    found: dict[str, str] = {}
    collided: set[str] = set()
    for name in names:
        said = derive_dialect_name(dialect, name)
        if said in found:
            if on_collision == "error":
                raise NameCollision(dialect, said, found[said], name)
            collided.add(said)
        found.setdefault(said, name)
    return {said: name for said, name in found.items() if said not in collided}
