"""Merkle proofs: whether this leaf is in that tree, and this tree continues that one.

The tree of RFC 9162 (section 2.1). It is kept as tiles, as in c2sp.org/tlog-tiles: tile (L, N) holds the hashes
N × 256 … N × 256 + 255 of tree level 8 × L, 32 bytes each; every other hash follows from these.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from .problems import InvalidProof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HASH_BYTES = 32
TILE_LEVELS = 8
TILE_WIDTH = 1 << TILE_LEVELS
EMPTY = hashlib.sha256(b"").digest()  # the root of the tree without leaves

_KEPT_TILES = 512  # 4 MiB


def leaf_hash(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """What must be remembered of a tree to append to it: the roots of its complete subtrees, largest first."""

    __slots__ = ("size", "stack")

    def __init__(self, size: int = 0, stack: Iterable[bytes] = ()) -> None:
        self.size, self.stack = size, list(stack)
        if len(self.stack) != size.bit_count() or any(len(hash) != HASH_BYTES for hash in self.stack):
            raise InvalidProof(f"{len(self.stack)} hashes are not the frontier of a tree of {size} leaves.")

    @classmethod
    def from_bytes(cls, size: int, hashes: bytes) -> Frontier:
        return cls(size, [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)])

    def to_bytes(self) -> bytes:
        return b"".join(self.stack)

    def append_many(self, leaf_hashes: Iterable[bytes], emit: Callable[[int, int, bytes], None] | None = None) -> None:
        """Append leaf hashes. ``emit(level, index, hash)`` gets each hash that a tile holds: those of tree levels 0, 8, 16 …,
        in order of the index within a level."""
        size, stack, sha256 = self.size, self.stack, hashlib.sha256
        for hash in leaf_hashes:
            if emit:
                emit(0, size, hash)
            index, level, node = size, 0, hash
            while index & 1:
                node = sha256(b"\x01" + stack.pop() + node).digest()
                index >>= 1
                level += 1
                if emit and level % TILE_LEVELS == 0:
                    emit(level, index, node)
            stack.append(node)
            size += 1
            self.size = size

    def root(self) -> bytes:
        return _fold(self.stack) if self.stack else EMPTY


class Tiles:
    """The hashes of a tree, read through ``load(L, N)``, which returns the bytes of a tile (also of a partial one) or None."""

    def __init__(self, load: Callable[[int, int], bytes | None]) -> None:
        self._load = load
        self._kept: dict[tuple[int, int], bytes] = {}

    def node(self, level: int, index: int) -> bytes:
        """The hash of the complete subtree over the leaves index × 2^level … (index + 1) × 2^level - 1."""
        tile_level, depth = divmod(level, TILE_LEVELS)
        n, first = divmod(index << depth, TILE_WIDTH)
        tile, start, width = self._tile(tile_level, n), first * HASH_BYTES, HASH_BYTES << depth
        hashes = tile[start : start + width]
        if len(hashes) != width:
            raise InvalidProof(f"Tile {n} of level {tile_level} ends before hash {first + (1 << depth) - 1}.")
        row = [hashes[at : at + HASH_BYTES] for at in range(0, width, HASH_BYTES)]
        while len(row) > 1:
            row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
        return row[0]

    def range_root(self, start: int, stop: int) -> bytes:
        """The Merkle tree hash of the leaves start … stop - 1, a range as proofs use them."""
        parts = []
        while start < stop:
            level = (stop - start).bit_length() - 1
            if start:
                level = min(level, (start & -start).bit_length() - 1)
            parts.append(self.node(level, start >> level))
            start += 1 << level
        return _fold(parts) if parts else EMPTY

    def root(self, size: int) -> bytes:
        return self.range_root(0, size)

    def _tile(self, level: int, n: int) -> bytes:
        key = (level, n)
        if key not in self._kept:
            if len(self._kept) >= _KEPT_TILES:
                self._kept.clear()
            self._kept[key] = bytes(self._load(level, n) or b"")
        return self._kept[key]


def inclusion_proof(tiles: Tiles, index: int, size: int) -> list[bytes]:
    """PATH(index, D[size]) of RFC 9162, 2.1.3.1."""
    if not 0 <= index < size:
        raise InvalidProof(f"A tree of {size} leaves has no leaf {index}.")
    path, start, stop = [], 0, size
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            path.append((middle, stop))
            stop = middle
        else:
            path.append((start, middle))
            start = middle
    return [tiles.range_root(*part) for part in reversed(path)]


def consistency_proof(tiles: Tiles, old: int, new: int) -> list[bytes]:
    """PROOF(old, D[new]) of RFC 9162, 2.1.4.1; empty if ``old`` is 0 or ``new``."""
    if not 0 <= old <= new:
        raise InvalidProof(f"A tree of {new} leaves does not continue one of {old}.")
    if old in (0, new):
        return []
    path, start, stop, whole = [], 0, new, True
    while stop != old:
        middle = start + _split(stop - start)
        if old <= middle:
            path.append((middle, stop))
            stop = middle
        else:
            path.append((start, middle))
            start, whole = middle, False
    if not whole:
        path.append((start, stop))
    return [tiles.range_root(*part) for part in reversed(path)]


def verify_inclusion(hash: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> None:
    """RFC 9162, 2.1.3.2. Raises :class:`InvalidProof`."""
    if not 0 <= index < size:
        raise InvalidProof(f"A tree of {size} leaves has no leaf {index}.")
    _check_lengths([hash, root, *path])
    first, last, node = index, size - 1, hash
    for other in path:
        if last == 0:
            raise InvalidProof(f"The proof of leaf {index} has hashes that a tree of {size} leaves does not need.")
        if first & 1 or first == last:
            node = node_hash(other, node)
            while not first & 1 and first:
                first >>= 1
                last >>= 1
        else:
            node = node_hash(node, other)
        first >>= 1
        last >>= 1
    if last:
        raise InvalidProof(f"The proof of leaf {index} lacks hashes for a tree of {size} leaves.")
    if node != root:
        raise InvalidProof(f"Leaf {index} is not in the tree of {size} leaves: its proof leads to another root.")


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> None:
    """RFC 9162, 2.1.4.2. Raises :class:`InvalidProof`."""
    if not 0 <= old <= new:
        raise InvalidProof(f"A tree of {new} leaves does not continue one of {old}.")
    _check_lengths([old_root, new_root, *path])
    if old == 0 and old_root != EMPTY:
        raise InvalidProof("The older tree claims to be empty, but its root is not that of the empty tree.")
    if old in (0, new):
        if path:
            raise InvalidProof(
                f"From {old} to {new} leaves a consistency proof has no hashes; this one has {len(path)}."
            )
        if old == new and old_root != new_root:
            raise InvalidProof(f"There are two different trees of {new} leaves: history was rewritten.")
        return
    hashes = [old_root, *path] if old.bit_count() == 1 else list(path)
    if not hashes or not path:
        raise InvalidProof(f"The consistency proof from {old} to {new} leaves is empty.")
    first, last = old - 1, new - 1
    while first & 1:
        first >>= 1
        last >>= 1
    old_node = new_node = hashes[0]
    for other in hashes[1:]:
        if last == 0:
            raise InvalidProof(f"The consistency proof from {old} to {new} leaves has hashes too many.")
        if first & 1 or first == last:
            old_node, new_node = node_hash(other, old_node), node_hash(other, new_node)
            while not first & 1 and first:
                first >>= 1
                last >>= 1
        else:
            new_node = node_hash(new_node, other)
        first >>= 1
        last >>= 1
    if last:
        raise InvalidProof(f"The consistency proof from {old} to {new} leaves lacks hashes.")
    if old_node != old_root:
        raise InvalidProof(f"The first {old} leaves are not those of the older tree: history was rewritten.")
    if new_node != new_root:
        raise InvalidProof(f"The consistency proof from {old} to {new} leaves leads to another newer root.")


def _fold(parts: Sequence[bytes]) -> bytes:
    root = parts[-1]
    for part in reversed(parts[:-1]):
        root = node_hash(part, root)
    return root


def _split(n: int) -> int:
    """The largest power of two smaller than n."""
    return 1 << ((n - 1).bit_length() - 1)


def _check_lengths(hashes: Iterable[bytes]) -> None:
    if any(len(hash) != HASH_BYTES for hash in hashes):
        raise InvalidProof(f"A hash of a proof does not have {HASH_BYTES} bytes.")
