"""Tool names: what a tool is called wherever a model or a client of MCP is told of it.

There is one rule for all dialects that do not take every name, so that a tool is called the same by each of them. It looks at the
name alone: what a tool is called does not change when others come and go. A name that every provider takes stays. In any other a dot
and a character that is refused become ``_``, and it has at most 48 characters: clients put the name of their server before it, and
providers take 64. Where more than one name could come to that, or something was cut, it ends in eight digits of its SHA-256.

Of ids of a hub (``group.package.tool``) no two come to one name but by the digits. An id without ``_`` in group and package
is found again in its name (:func:`restore_tool_id`).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Literal

from unitools.dialects.errors import NameCollision

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED = (
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock",
    "langchain",
    "mcp",
)  # all other dialects take every name
LONGEST = 48  # of a name that was made
_DIGITS = 8
_ROOM = LONGEST - _DIGITS - 1
_TAKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # by OpenAI, Anthropic and Gemini
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_FIRST = re.compile(r"[A-Za-z_]")  # for Gemini
_DIGESTED = re.compile(rf".*_[0-9a-f]{{{_DIGITS}}}")


def derive_tool_name(name: str) -> str:
    """The tool's name where not every name is taken; itself if every provider takes it."""
    if _TAKEN.fullmatch(name):
        return name
    parts = [_REFUSED.sub("_", part) for part in name.split(".")]
    said = _begin("_".join(parts))
    lost = not name or any(char.isalnum() and not char.isascii() for char in name)
    if lost or len(said) > LONGEST or _DIGESTED.fullmatch(said) or any("_" in part for part in parts[:-1]):
        return f"{_begin(_shorten(parts))[:_ROOM]}_{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"
    return said


def _begin(said: str) -> str:
    return said if _FIRST.match(said) else f"_{said}"


def _shorten(parts: list[str]) -> str:
    """As many parts as there is room for, from the last, which says what the tool does."""
    kept = parts[-1][:_ROOM]
    for part in reversed(parts[:-1]):
        if len(part) + 1 + len(kept) > _ROOM:
            break
        kept = f"{part}_{kept}"
    return kept


def restore_tool_id(name: str) -> str | None:
    """The id of a hub's tool that has this name; of an id itself. None if the name does not tell, or is none."""
    id = name if "." in name else ".".join(name.split("_", 2))
    return id if id.count(".") == 2 and name in (id, derive_tool_name(id)) else None


def build_id_pattern(name: str) -> str | None:
    """A regular expression for the ids that may have this name, where the name does not tell; None if it has no digits."""
    if len(name) > LONGEST or _REFUSED.search(name) or not _DIGESTED.fullmatch(name):
        return None
    return rf"(^|\.){name[: -_DIGITS - 1].replace('_', '[._]')}"


def derive_dialect_name(dialect: str, name: str) -> str:
    """The tool's name in the dialect; itself where the dialect takes every name."""
    return derive_tool_name(name) if dialect in NAMED else name


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
