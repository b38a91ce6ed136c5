"""Tree walk: whether the tree follows from the leaves, and the checkpoints say so.

A :class:`TreeWalk` goes along a log from leaf to leaf and remembers nothing but the frontier of the tree that it makes, so it can stop
anywhere and go on later. Where a leaf and its tile differ it follows both until a checkpoint says which one was changed: what comes
after a wrong leaf is verified like what came before.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from django.db.models import Q

from evidence.integrity import column_types
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.signatures import trusted_keys, verify_note
from evidence.integrity.stored_leaves import iter_stored_leaves, why_missing
from evidence.models import Checkpoint, Log, Tile
from evidence.verify.merkle import HASH_BYTES, TILE_LEVELS, TILE_WIDTH, Frontier, Tiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.archives.leaves import ArchivedBundles
    from evidence.verify.notes import VerifierKey

PIECE = 16 * TILE_WIDTH
NO_HASH = bytes(HASH_BYTES)


class TreeWalk:
    """``position``: the next leaf. ``state``: what to give to the next :class:`TreeWalk` to go on from there."""

    def __init__(self, log: Log, *, position: int = 0, state: bytes = b"") -> None:
        self.log, self.tenant_id = log, log.pk
        length = position.bit_count() * HASH_BYTES
        self.made = Frontier.from_bytes(position, state[:length])
        self.tiled = Frontier.from_bytes(position, state[length:]) if len(state) > length else None
        self.pairs: dict[UUID, list[tuple[str, int]]] = {}  # which Begins and Ends the last piece has, of each call
        self.committed: dict[str, int] = {}  # which stored values the last piece commits to, each with its leaf
        self.unread = 0  # leaves that are in the archive, which did not answer
        self.checkpoints = 0

    @classmethod
    def begun_at(cls, log: Log, start: int) -> TreeWalk:
        """In the middle: the tiles say what the tree before was. Whether they are right, the next checkpoint says."""
        tiles = load_tiles(log.pk)
        parts, at = [], 0
        for level in reversed(range(start.bit_length())):
            if start >> level & 1:
                parts.append(tiles.node(level, at >> level))
                at += 1 << level
        return cls(log, position=start, state=b"".join(parts))

    @property
    def position(self) -> int:
        return self.made.size

    @property
    def state(self) -> bytes:
        return self.made.to_bytes() + (self.tiled.to_bytes() if self.tiled else b"")

    def go_on(self, stop: int, archive: ArchivedBundles) -> list[IntegrityFinding]:
        """Up to ``stop``, but no further than a piece. Raises :class:`~evidence.archives.leaves.BundlesLacking`, and stands where it
        stood.
        """
        start = self.position
        stop = min(stop, (start // PIECE + 1) * PIECE)
        if stop <= start:
            return []
        found: list[IntegrityFinding] = []
        tiles = _tiles_between(self.tenant_id, start, stop)
        hashes = self._hashes(start, stop, tiles, found, archive)
        rows = Checkpoint.objects.filter(tenant_id=self.tenant_id, size__gt=start, size__lte=stop).order_by("size")
        nodes: dict[tuple[int, int], set[bytes]] = defaultdict(set)
        keys = trusted_keys(self.log)  # with each piece: a key may be added, and another retired, meanwhile
        mistyped = column_types.mistyped_checkpoints(self.tenant_id, start, stop)
        found += [IntegrityFinding(FindingCode.CHECKPOINT_TYPE, size - 1, names) for size, names in mistyped.items()]
        found += _mistyped_tiles(self.tenant_id, start, stop)
        for row in rows.defer("created_at"):
            self._grow(hashes, row.size - start, nodes)
            found += self._check(row, keys)
        self._grow(hashes, stop - start, nodes)
        found += _wrong_tiles(tiles, nodes, start, stop)
        return found

    def _hashes(
        self,
        start: int,
        stop: int,
        tiles: dict[tuple[int, int], bytes],
        found: list[IntegrityFinding],
        archive: ArchivedBundles,
    ) -> _Hashes:
        """Of each leaf: what is made from its text, and what its tile says."""
        there: dict[int, bytes | None] = {}
        self.pairs, self.committed = defaultdict(list), {}
        leaves = list(iter_stored_leaves(self.tenant_id, start, stop, archive))
        archive.check_whole()
        for leaf in leaves:
            if leaf.index in there:
                found.append(IntegrityFinding(FindingCode.SEAL_DOUBLED, leaf.index))
                continue
            there[leaf.index] = leaf.hash
            found += leaf.wrong
            self.unread += leaf.unread
            self.committed |= {id.decode(): leaf.index for id in leaf.committed}
            if leaf.pair:
                self.pairs[leaf.pair[0]].append((leaf.pair[1], leaf.index))
        made, tiled = [], []
        for index in range(start, stop):
            n, place = divmod(index, TILE_WIDTH)
            stored = tiles.get((0, n), b"")[place * HASH_BYTES : (place + 1) * HASH_BYTES]
            stored = stored if len(stored) == HASH_BYTES else b""
            hash = there.get(index)
            if index not in there:
                found.append(why_missing(self.tenant_id, index))
            elif hash and stored and stored != hash:
                found.append(IntegrityFinding(FindingCode.LEAF_CHANGED, index))
            made.append(hash or stored or NO_HASH)
            tiled.append(stored or made[-1])
        return _Hashes(made, tiled)

    def _grow(self, hashes: _Hashes, upto: int, nodes: dict[tuple[int, int], set[bytes]]) -> None:
        made, tiled = hashes.take(upto)

        def emit(level: int, index: int, hash: bytes) -> None:
            if level:
                nodes[level // TILE_LEVELS, index].add(hash)

        if self.tiled is None and made != tiled:
            self.tiled = Frontier(self.made.size, self.made.stack)
        self.made.append_many(made, emit)
        if self.tiled is not None:
            self.tiled.append_many(tiled, emit)

    def _check(self, row: Checkpoint, keys: list[VerifierKey]) -> list[IntegrityFinding]:
        self.checkpoints += 1
        last = row.size - 1
        found = verify_note(row, self.log, keys)
        roots = {self.made.root()} | ({self.tiled.root()} if self.tiled else set())
        root = bytes(row.root)
        if root not in roots:
            return [*found, IntegrityFinding(FindingCode.CHECKPOINT_ROOT, last, f"size {row.size}")]
        if (
            self.tiled is not None and not found
        ):  # it says which of the two was changed; from here on they are one again
            self.made = self.tiled if root == self.tiled.root() else self.made
            self.tiled = None
        return found


class _Hashes:
    """Of the leaves of a piece, in order."""

    def __init__(self, made: list[bytes], tiled: list[bytes]) -> None:
        self.made, self.tiled, self.used = made, tiled, 0

    def take(self, upto: int) -> tuple[list[bytes], list[bytes]]:
        """Those not taken yet, of the first ``upto``."""
        taken = self.made[self.used : upto], self.tiled[self.used : upto]
        self.used = upto
        return taken


def load_tiles(tenant_id: UUID) -> Tiles:
    """The tree as it is stored."""

    def load(level: int, n: int) -> bytes | None:
        row = Tile.objects.filter(tenant_id=tenant_id, level=level, n=n).first()
        return bytes(row.hashes) if row else None

    return Tiles(load)


def _tiles_between(tenant_id: UUID, start: int, stop: int) -> dict[tuple[int, int], bytes]:
    """By level and number: those that have a hash of a subtree that ends within ``start`` … ``stop``."""
    wanted = Q()
    for level, first, last in _numbers(start, stop):
        wanted |= Q(level=level, n__gte=first, n__lte=last)
    rows = Tile.objects.filter(wanted, tenant_id=tenant_id)
    return {(row.level, row.n): bytes(row.hashes) for row in rows}


def _numbers(start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Level, the first tile and the last."""
    level = 0
    while stop >> level * TILE_LEVELS:
        first, last = start >> level * TILE_LEVELS, (stop >> level * TILE_LEVELS) - 1
        yield level, first >> TILE_LEVELS, max(first, last) >> TILE_LEVELS
        level += 1


def _mistyped_tiles(tenant_id: UUID, start: int, stop: int) -> Iterator[IntegrityFinding]:
    """At the first leaf that they are of: the last one moves on as the log grows."""
    for level, first, last in _numbers(start, stop):
        for n, names in column_types.of_tiles(tenant_id, level, first, last).items():
            yield IntegrityFinding(FindingCode.ROW_TYPE, n << (level + 1) * TILE_LEVELS, f"tile/{level}/{n}: {names}")


def _wrong_tiles(
    tiles: dict[tuple[int, int], bytes], nodes: dict[tuple[int, int], set[bytes]], start: int, stop: int
) -> list[IntegrityFinding]:
    """Hashes above the leaves that are not those of the tree, and tiles that end too early."""
    found = []
    for (level, index), right in nodes.items():
        n, place = divmod(index, TILE_WIDTH)
        stored = tiles.get((level, n), b"")[place * HASH_BYTES : (place + 1) * HASH_BYTES]
        last = ((index + 1) << level * TILE_LEVELS) - 1
        if stored not in right:
            found.append(IntegrityFinding(FindingCode.TILE_WRONG, last, f"tile/{level}/{n}"))
    found += [
        IntegrityFinding(FindingCode.TILE_MISSING, min((n + 1) * TILE_WIDTH, stop) - 1, f"tile/0/{n}")
        for n in range(start >> TILE_LEVELS, (stop - 1 >> TILE_LEVELS) + 1)
        if len(tiles.get((0, n), b"")) < min(TILE_WIDTH, stop - n * TILE_WIDTH) * HASH_BYTES
    ]
    return found
