"""MCP listings: what a server of others says of its tools, and what of it a manifest pins.

``listing.json`` in the package of a brought tool is ``{"protocol": …, "tools": […]}``, every entry as the server sent it. The digests
are of JSON with sorted keys, without spaces, as UTF-8; that of the whole is over the entries sorted by name, so that an order
that changes is no change.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unitools.mcp_conversation import MAX_TOOLS
from unitools.strict_json import STRICT, JsonReader, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LISTING_FILE = "listing.json"
MAX_LISTING_BYTES = 1024 * 1024
MAX_LISTING_DEPTH = 64
MAX_NAME_CHARS = 200
MAX_INT_CHARS = 20
_PARTS = frozenset({"title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution"})
_SHOWN_DIFFERENCES = 6
_SHOWN_CHARS = 150


class ListingUnfit(Exception):
    """What a server lists cannot be taken as it is. The message says what."""


def _read_whole(text: str) -> int:
    if len(text) > MAX_INT_CHARS:
        raise JsonRefused("huge_number")
    return int(text)


# What a hub reads of a box, and its database takes.
_KEPT = JsonReader(read_whole=_read_whole, takes_nul=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """``protocol``: the revision of MCP that was spoken; ``tools``: the entries by the names that the server gives them."""

    protocol: str
    tools: dict[str, dict[str, Any]]

    @classmethod
    def from_json(cls, said: Any) -> Listing:
        """From what a server has said, or a file keeps of it. Raises :class:`ListingUnfit`."""
        if not (
            isinstance(said, dict) and isinstance(said.get("protocol"), str) and isinstance(said.get("tools"), list)
        ):
            raise ListingUnfit("A listing is an object with a protocol and tools.")
        tools: dict[str, dict[str, Any]] = {}
        for entry in said["tools"]:
            name = entry.get("name") if isinstance(entry, dict) else None
            if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS and name.isprintable()):
                raise ListingUnfit(f"A tool needs a name of 1 to {MAX_NAME_CHARS} printable characters.")
            if name in tools:
                raise ListingUnfit(f"The server lists two tools of the name {name!r}.")
            tools[name] = entry
        if len(tools) > MAX_TOOLS:
            raise ListingUnfit(f"The server lists more than {MAX_TOOLS:,} tools.")
        listing = cls(said["protocol"], tools)
        data = listing.to_bytes()
        if len(data) > MAX_LISTING_BYTES:
            raise ListingUnfit(f"The server's list has more than {MAX_LISTING_BYTES:,} bytes.")
        try:
            _KEPT.read(data, max_depth=MAX_LISTING_DEPTH)
        except JsonRefused as error:
            raise ListingUnfit(f"The server's list cannot be kept: {error}") from error
        return listing

    @classmethod
    def from_bytes(cls, data: bytes) -> Listing:
        """From a ``listing.json``, which can be read in one way only."""
        try:
            return cls.from_json(STRICT.read(data.decode("utf-8")))
        except (UnicodeDecodeError, JsonRefused, RecursionError) as error:
            raise ListingUnfit(f"{LISTING_FILE} is no JSON that can be read in one way only.") from error

    def to_bytes(self) -> bytes:
        """The same listing gives the same bytes."""
        said = {"protocol": self.protocol, "tools": [self.tools[name] for name in sorted(self.tools)]}
        try:
            return json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            raise ListingUnfit("The server's list holds what is no JSON: NaN, or half of a character.") from error

    @property
    def digest(self) -> str:
        return compute_json_digest([self.tools[name] for name in sorted(self.tools)])

    def entry_digest(self, name: str) -> str:
        """``KeyError`` where the server lists no such tool."""
        return compute_json_digest(self.tools[name])


def compute_json_digest(value: Any) -> str:
    return compute_digest_and_size(value)[0]


def compute_digest_and_size(value: Any) -> tuple[str, int]:
    """With the number of bytes that it is written in."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    written = text.encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(written).hexdigest()}", len(written)


def read_entry_schema(entry: dict[str, Any], name: str) -> dict[str, Any] | None:
    """``inputSchema`` or ``outputSchema`` of an entry as a manifest has it: without the name of its dialect. None: it has none."""
    said = entry.get(name)
    return {word: value for word, value in said.items() if word != "$schema"} if isinstance(said, dict) else None


def list_entry_changes(pinned: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Which parts of an entry are otherwise, by the names that MCP gives them; what MCP does not name is ``other``."""
    names = [name for name in pinned.keys() | found.keys() if _differs(pinned.get(name), found.get(name))]
    return sorted({name if name in _PARTS else "other" for name in names})


def _differs(one: Any, other: Any) -> bool:
    return compute_json_digest(one) != compute_json_digest(other)


def show_drift(pinned: Listing, found: Listing) -> str:
    """What is otherwise in the entries that both have, a line each, with the texts of the server: for people who look into it."""
    lines: list[str] = []
    for name in sorted(pinned.tools.keys() & found.tools.keys()):
        for pointer, then, now in _differences(pinned.tools[name], found.tools[name]):
            if len(lines) == _SHOWN_DIFFERENCES:
                return "\n".join([*lines, "…"])
            lines.append(f"{name} {pointer}: {_shown(then)} when it was brought, {_shown(now)} here")
    return "\n".join(lines)


def _differences(then: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    waiting = [("", then, now)]
    while waiting:
        at, one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            names = sorted(one.keys() | other.keys(), reverse=True)
            waiting += [(f"{at}/{name}", one.get(name), other.get(name)) for name in names]
        elif _differs(one, other):
            yield at, one, other


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def describe_drift(pinned: Listing, found: Listing, *, tools: Sequence[str]) -> str:
    """What the server lists otherwise than it did, in one sentence without its texts; empty: nothing. ``tools`` stand first."""
    if pinned.digest == found.digest:
        return ""
    gone = sorted(pinned.tools.keys() - found.tools.keys())
    more = sorted(found.tools.keys() - pinned.tools.keys())
    both = sorted(pinned.tools.keys() & found.tools.keys(), key=lambda name: (name not in tools, name))
    changed = [name for name in both if pinned.entry_digest(name) != found.entry_digest(name)]
    parts = [
        f"{what} {', '.join(names[:5])}"
        for what, names in (("changed:", changed), ("gone:", gone), ("new:", more))
        if names
    ]
    return f"The server lists its tools otherwise than it did when it was brought ({'; '.join(parts)})."
