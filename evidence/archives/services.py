"""Archive services: a log is copied to an object store, read back from there and verified.

What is there afterwards is the log as c2sp.org/tlog-tiles has it, with its checkpoint, its keys and the proof that its checkpoint is
in the global log. Nothing is taken from the hub.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.hub import ArchivedLog
from evidence.log import reader
from evidence.log.origins import log_name
from evidence.models import GLOBAL_LOG, Log
from evidence.problems import NotSealed
from evidence.verify.archive import CHECKPOINT, GLOBAL, VKEYS
from evidence.verify.merkle import HASH_BYTES, TILE_WIDTH, Frontier
from evidence.verify.notes import open_checkpoint
from evidence.verify.problems import InvalidEvidence
from evidence.verify.tiles import ENTRIES, TilePath, iter_tiles, pack_entries, unpack_entries
from evidence.verify.wholelog import check_log
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.archives.object_stores import ObjectStore
    from evidence.models import Checkpoint
    from evidence.verify import notes


class ArchiveDiffers(Exception):
    """What the hub has and what the archive has do not belong together. The message says where."""


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """Leaves ``start`` to ``stop`` - 1 were copied and verified; ``digest``: of the list of the objects with their digests."""

    start: int
    stop: int
    objects: int
    digest: str


def list_archived_logs() -> list[Log]:
    """All logs but the global one, whose leaves are checkpoints of the others. Acts hub-wide."""
    return list(Log.objects.exclude(pk=GLOBAL_LOG).filter(size__gt=0).order_by("pk"))


def archive_log(log: Log, store: ObjectStore) -> ArchivedRange | None:
    """Copy what the archive of this log does not have yet, up to the newest checkpoint; None: it has all of it. Acts hub-wide.

    Raises :class:`ArchiveDiffers` and :class:`~evidence.archives.object_stores.ArchiveUnavailable`. A run that was cut short is made
    again from where the archive's checkpoint stands: it is written last.
    """
    folder = log_name(log.pk)
    newest = reader.latest_checkpoint(log.pk)
    assert newest is not None, "a log with leaves has a checkpoint"
    vkeys = reader.list_vkeys(log.origin)
    head = _open(newest.note, vkeys, log, "The hub's newest checkpoint")
    there = store.read(f"{folder}/{CHECKPOINT}")
    before = _open(there.decode(), vkeys, log, "The archive's checkpoint") if there is not None else None
    start = before.size if before is not None else 0
    frontier = _frontier_of(log.pk, start)
    if before is not None and (start > head.size or frontier.root() != before.root):
        raise ArchiveDiffers(f"{log.origin} does not continue the {start} leaves that its archive has.")
    if start == head.size:
        return None
    digests = {
        str(path): hashlib.sha256(_copy_tile(log.pk, path, f"{folder}/{path}", store)).hexdigest()
        for path in iter_tiles(head.size)
        if _is_new(path, start)
    }
    rows = _read_back(folder, store, start, head.size)
    for finding in check_log(rows, [head], frontier=frontier):
        at = "" if finding.index is None else f" Leaf {finding.index}."
        raise ArchiveDiffers(f"What {log.origin} has in the archive is not what was signed. {finding.sentence}{at}")
    listed = "".join(f"{digest}  {path}\n" for path, digest in digests.items())
    found = ArchivedRange(start, head.size, len(digests), f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}")
    _write_heads(folder, store, newest, vkeys)
    with transaction.atomic():
        evidence.record(
            kind=Kind.LOG_ARCHIVED,
            subject=f"log:{log_name(log.pk)}",
            actor=Principal.system("archive", tenant_id=log.pk),
            data=ArchivedLog(
                place=str(store), start=start, stop=found.stop, objects=found.objects, digest=found.digest
            ),
        )
    return found


def _open(note: str, vkeys: list[str], log: Log, what: str) -> notes.Checkpoint:
    try:
        return open_checkpoint(note, vkeys, origin=log.origin)
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"{what} of {log.origin} is not one that the hub has signed: {error}") from error


def _frontier_of(tenant_id: UUID, size: int) -> Frontier:
    """The roots of the complete subtrees of the first ``size`` leaves, from the tiles."""
    tree, stack, start = reader.load_tree(tenant_id), [], 0
    try:
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                stack.append(tree.node(level, start >> level))
                start += 1 << level
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"The hub's tiles do not reach to the {size} leaves that are archived: {error}") from error
    return Frontier(size, stack)


def _is_new(path: TilePath, start: int) -> bool:
    """Whether it holds anything of a leaf from ``start`` on."""
    had = start >> (8 * max(path.level, 0))
    return path.n * TILE_WIDTH + path.width > had


def _copy_tile(tenant_id: UUID, path: TilePath, name: str, store: ObjectStore) -> bytes:
    """What the archive has of it afterwards."""
    if path.level == ENTRIES:
        first = path.n * TILE_WIDTH
        data = pack_entries(leaf for _, leaf, _ in reader.iter_leaves(tenant_id, first, first + path.width))
    else:
        data = (reader.read_tile(tenant_id, path.level, path.n) or b"")[: path.width * HASH_BYTES]
    store.write_new(name, data, compress=path.level == ENTRIES)
    there = store.read(name)
    if there != data:
        raise ArchiveDiffers(f"{name} was written otherwise than it is in the hub, or before and changed since.")
    return there


def _read_back(folder: str, store: ObjectStore, start: int, stop: int) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The leaves from the archive, each with the hash that the archive's tile has of it."""
    for n in range(start // TILE_WIDTH, -(-stop // TILE_WIDTH)):
        first = n * TILE_WIDTH
        width = min(TILE_WIDTH, stop - first)
        leaves = unpack_entries(store.read(f"{folder}/{TilePath(ENTRIES, n, width)}") or b"")
        hashes = store.read(f"{folder}/{TilePath(0, n, width)}") or b""
        for at, leaf in islice(enumerate(leaves), max(0, start - first), None):
            yield first + at, leaf, hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES]


def _write_heads(folder: str, store: ObjectStore, newest: Checkpoint, vkeys: list[str]) -> None:
    """What says how far the log has come; the checkpoint last, since the next run begins there."""
    store.replace(f"{folder}/{VKEYS}", "".join(f"{vkey}\n" for vkey in vkeys).encode())
    with suppress(NotSealed):  # the global log has it in a moment, and the next run brings it
        store.replace(f"{folder}/{GLOBAL}", reader.build_anchor_proof(newest).encode())
    store.replace(f"{folder}/{CHECKPOINT}", newest.note.encode())
