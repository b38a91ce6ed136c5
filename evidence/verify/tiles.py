"""Tiles: where each tile of a log is, and what is in it.

The addresses and contents of c2sp.org/tlog-tiles: ``tile/<L>/<N>`` holds up to 256 hashes, ``tile/entries/<N>`` the leaves
of the same numbers; one that is not full yet is ``….p/<W>``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .merkle import TILE_LEVELS, TILE_WIDTH
from .problems import MalformedEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LEAF_BYTES = 65_535
ENTRIES = -1  # the level of tiles that hold leaves

_PATH = re.compile(
    r"tile/(entries|[0-9]|[1-5][0-9]|6[0-3])/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?", re.ASCII
)


@dataclass(frozen=True)
class TilePath:
    """Which tile: its level (``ENTRIES`` for leaves), its number, and how many entries it has."""

    level: int
    n: int
    width: int = TILE_WIDTH

    def __str__(self) -> str:
        groups, rest = [f"{self.n % 1000:03}"], self.n // 1000
        while rest:
            groups.insert(0, f"x{rest % 1000:03}")
            rest //= 1000
        partial = "" if self.width == TILE_WIDTH else f".p/{self.width}"
        return f"tile/{'entries' if self.level == ENTRIES else self.level}/{'/'.join(groups)}{partial}"

    @classmethod
    def parse(cls, path: str) -> TilePath:
        if not (found := _PATH.fullmatch(path)):
            raise MalformedEvidence(f"{path!r} is no path of a tile.")
        level, groups, width = found.groups()
        tile = cls(
            ENTRIES if level == "entries" else int(level),
            int(groups.replace("x", "").replace("/", "")),
            int(width or TILE_WIDTH),
        )
        if str(tile) != path:
            raise MalformedEvidence(f"{path!r} is no path of a tile.")
        return tile


def iter_tiles(size: int) -> Iterator[TilePath]:
    """All tiles of a tree of ``size`` leaves, those with leaves first."""
    level, count = 0, size
    while count:
        for n in range(-(-count // TILE_WIDTH)):
            width = min(TILE_WIDTH, count - n * TILE_WIDTH)
            if level == 0:
                yield TilePath(ENTRIES, n, width)
            yield TilePath(level, n, width)
        count >>= TILE_LEVELS
        level += 1


def pack_entries(leaves: Iterable[bytes]) -> bytes:
    """Leaves as one entry bundle: each behind its length, two bytes, big-endian."""
    return b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in leaves)


def unpack_entries(bundle: bytes) -> list[bytes]:
    leaves: list[bytes] = []
    at = 0
    while at < len(bundle):
        end = at + 2 + int.from_bytes(bundle[at : at + 2], "big")
        if end > len(bundle) or at + 2 > len(bundle):
            raise MalformedEvidence(f"An entry bundle ends within its leaf {len(leaves)}.")
        leaves.append(bundle[at + 2 : end])
        at = end
    return leaves
