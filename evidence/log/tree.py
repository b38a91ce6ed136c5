"""Tree: how it gets longer.

Inside the sealer's transaction: the frontier says which hashes come next, the tiles get them. Before anything is appended or signed
again, what is stored must lead to the newest checkpoint, and a key of the log must have signed that: nothing is built on a tree
that somebody has changed, who would get the signature that they cannot make.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from evidence.log.signing_keys import list_vkeys
from evidence.models import Checkpoint, Log, Tile
from evidence.verify.merkle import EMPTY, HASH_BYTES, TILE_LEVELS, TILE_WIDTH, Frontier
from evidence.verify.notes import open_checkpoint
from evidence.verify.problems import InvalidEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHIFT = TILE_WIDTH.bit_length() - 1


class LogDamaged(Exception):
    """What is stored of a log does not fit together, so that nothing may be appended."""


def append_hashes(log: Log, hashes: Sequence[bytes]) -> bytes:
    """Append leaf hashes to the tiles and to the row of the log; returns the new root."""
    frontier, before = signed_frontier(log), log.size
    new: dict[tuple[int, int], list[bytes]] = defaultdict(list)

    def emit(level: int, index: int, hash: bytes) -> None:
        new[level // TILE_LEVELS, index >> _SHIFT].append(hash)

    frontier.append_many(hashes, emit)
    _write(log, {place: b"".join(group) for place, group in new.items()})
    log.size, log.frontier = frontier.size, frontier.to_bytes()
    won = Log.objects.filter(pk=log.pk, size=before).update(size=log.size, frontier=log.frontier)
    if won != 1:
        raise LogDamaged(f"{log} grew while it was being sealed.")
    return frontier.root()


def signed_frontier(log: Log) -> Frontier:
    """What the next leaf needs. Raises :class:`LogDamaged` unless it leads to the newest checkpoint, as it was signed."""
    newest = Checkpoint.objects.filter(tenant_id=log.pk).order_by("-size").first()
    try:
        frontier = Frontier.from_bytes(log.size, bytes(log.frontier))
        said = open_checkpoint(newest.note, list_vkeys(log.origin), origin=log.origin) if newest else None
    except InvalidEvidence as error:
        raise LogDamaged(f"{log}: {error}") from error
    trees = {(newest.size, bytes(newest.root)), (said.size, said.root)} if newest and said else {(0, EMPTY)}
    if trees != {(log.size, frontier.root())}:
        raise LogDamaged(f"{log} does not lead to its newest checkpoint.")
    return frontier


def _write(log: Log, new: dict[tuple[int, int], bytes]) -> None:
    """The last tile of a level gets longer, unless it is full; those that begin here are written."""
    begun = []
    for (level, n), hashes in new.items():
        last, width = divmod(log.size >> level * TILE_LEVELS, TILE_WIDTH)  # of the hashes that this level had before
        if n > last or not width:
            begun.append(Tile(tenant_id=log.pk, level=level, n=n, hashes=hashes))
            continue
        there = Tile.objects.filter(tenant_id=log.pk, level=level, n=n)
        tile = there.first()
        if tile is None or len(tile.hashes) != width * HASH_BYTES:
            raise LogDamaged(f"{log}: tile {n} of level {level} has another length than its log.")
        there.update(hashes=bytes(tile.hashes) + hashes)
    Tile.objects.bulk_create(begun)
