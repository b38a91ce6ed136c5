"""Log reader: how a log is read.

Whoever asks about a tenant acts for it, or hub-wide: row level security holds here as everywhere. Proofs are made from tiles, and
fit a checkpoint that was published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from evidence.archives.leaves import restore_leaf
from evidence.log.origins import new_origin as first_origin_of
from evidence.log.signing_keys import list_vkeys as list_vkeys
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, Seal, Tile
from evidence.problems import NoSuchTree, NotSealed
from evidence.verify import merkle, notes
from evidence.verify.proofs import ConsistencyProof, InclusionProof

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.models import QuerySet

CHUNK = 2_000


def load_origin(tenant_id: UUID) -> str:
    """The log's, which stays when the hub moves to another address; or the one that it will have."""
    found = Log.objects.filter(pk=tenant_id).values_list("origin", flat=True).first()
    return found or first_origin_of(tenant_id)


def latest_checkpoint(tenant_id: UUID) -> Checkpoint | None:
    return Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-size").first()


def checkpoint_at(tenant_id: UUID, size: int | None = None) -> Checkpoint:
    """The one of that size, or the newest; raises :class:`NoSuchTree`."""
    found = (
        latest_checkpoint(tenant_id)
        if size is None
        else Checkpoint.objects.filter(tenant_id=tenant_id, size=size).first()
    )
    if found is None:
        raise NoSuchTree("This log has no checkpoint" + (f" of {size} leaves." if size is not None else " yet."))
    return found


def read_tile(tenant_id: UUID, level: int, n: int) -> bytes | None:
    found = Tile.objects.filter(tenant_id=tenant_id, level=level, n=n).values_list("hashes", flat=True).first()
    return None if found is None else bytes(found)


def load_tree(tenant_id: UUID) -> merkle.Tiles:
    return merkle.Tiles(lambda level, n: read_tile(tenant_id, level, n))


def find_leaf_index(fact: Fact) -> int | None:
    """Which leaf of its tenant's log the fact is; None: it is not sealed yet."""
    return Seal.objects.filter(pk=fact.pk).values_list("leaf_index", flat=True).first()


def select_leaves(tenant_id: UUID, start: int, stop: int) -> QuerySet[Fact]:
    """The facts that are leaves ``start`` to ``stop`` - 1 of the log, in its order.

    On PostgreSQL with the ids between which they are: for thousands of single ids it would rather read all months from end to end.
    """
    rows = Fact.objects.filter(seal__tenant_id=tenant_id, seal__leaf_index__gte=start, seal__leaf_index__lt=stop)
    if connection.vendor == "postgresql":
        seals = Seal.objects.filter(tenant_id=tenant_id, leaf_index__gte=start, leaf_index__lt=stop)
        ids = list(seals.values_list("fact_id", flat=True))
        rows = rows.filter(id__range=(min(ids), max(ids))) if ids else rows.none()
    return rows.order_by("seal__leaf_index")


def iter_leaves(tenant_id: UUID, start: int, stop: int) -> Iterator[tuple[int, bytes, bytes]]:
    """``(index, leaf, leaf_hash)`` as stored, in order; a chunk at a time is in memory. A leaf that is gone leaves a gap."""
    for first in range(start, stop, CHUNK):
        rows = select_leaves(tenant_id, first, min(first + CHUNK, stop))
        for index, leaf, hash in rows.values_list("seal__leaf_index", "leaf", "leaf_hash"):
            yield index, restore_leaf(leaf, tenant_id, index, hash), bytes(hash)


def build_inclusion_proof(fact: Fact, *, size: int | None = None) -> str:
    """That the fact is in the log, as text (c2sp.org/tlog-proof): with the newest checkpoint, or with the one of that size."""
    index = find_leaf_index(fact)
    if index is None:
        raise NotSealed()
    checkpoint = checkpoint_at(fact.tenant_id, size)
    if index >= checkpoint.size:
        raise NoSuchTree(f"This fact is leaf {index}, which a checkpoint of {checkpoint.size} leaves does not hold.")
    return _proof(fact.tenant_id, index, checkpoint)


def build_anchor_proof(checkpoint: Checkpoint) -> str:
    """That a tenant's checkpoint is in the global log, whose checkpoint witnesses sign. Acts hub-wide."""
    anchor = latest_checkpoint(GLOBAL_LOG)
    if checkpoint.global_index is None or anchor is None or checkpoint.global_index >= anchor.size:
        raise NotSealed("This checkpoint is not in the global log yet.")
    return _proof(GLOBAL_LOG, checkpoint.global_index, anchor)


def checkpoint_text(checkpoint: Checkpoint) -> bytes:
    """What the leaf of the global log holds: the checkpoint without its signatures."""
    return notes.split_note(checkpoint.note)[0].encode()


def _proof(tenant_id: UUID, index: int, checkpoint: Checkpoint) -> str:
    path = merkle.inclusion_proof(load_tree(tenant_id), index, checkpoint.size)
    return InclusionProof(index, tuple(path), checkpoint.note).text()


def build_consistency_proof(tenant_id: UUID, old: int, new: int | None = None) -> str:
    """That the log continues its first ``old`` leaves, as text: up to the newest checkpoint, or to the one of that size."""
    checkpoint = checkpoint_at(tenant_id, new)
    if not 0 <= old <= checkpoint.size:
        raise NoSuchTree(f"The checkpoint of {checkpoint.size} leaves does not continue one of {old}.")
    path = merkle.consistency_proof(load_tree(tenant_id), old, checkpoint.size)
    return ConsistencyProof(old, tuple(path), checkpoint.note).text()
