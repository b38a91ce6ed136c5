"""Archive services: a log is copied to an object store, read back from there and verified.

What is there afterwards is the log as c2sp.org/tlog-tiles has it, with its checkpoint, its keys and the proof that its checkpoint is
in the global log. Nothing is taken from the hub.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from django.db import transaction

from evidence import services as evidence
from evidence.archives.leaves import count_archived_leaves
from evidence.archives.object_stores import ArchiveUnavailable
from evidence.kinds import Kind
from evidence.leaves.hub import ArchivedLog
from evidence.log import reader
from evidence.log.origins import log_name
from evidence.models import GLOBAL_LOG, Anchor, Checkpoint, Log, Seal
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.verify.archive import CHECKPOINT, GLOBAL, VKEYS
from evidence.verify.merkle import (
    HASH_BYTES,
    TILE_WIDTH,
    Frontier,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from evidence.verify.notes import open_checkpoint
from evidence.verify.problems import InvalidEvidence
from evidence.verify.tiles import ENTRIES, TilePath, iter_tiles, pack_entries, unpack_entries
from evidence.verify.wholelog import check_log
from evidence.witnesses.anchors import load_anchor_targets
from kernel.database.tenancy import NO_TENANT
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.archives.object_stores import ObjectStore
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
    """Copy what the archive of this log does not have yet, up to the newest checkpoint that the global log holds; None: it has all
    that is not about archives. Acts hub-wide, and alone: :func:`evidence.archives.turns.take_turn_at_archive`.

    Raises :class:`ArchiveDiffers` and :class:`ArchiveUnavailable`. A run that was cut short is made again from where the archive's
    checkpoint stands: it is written last.
    """
    newest = _find_anchored_checkpoint(log.pk)
    if newest is None:
        return None
    try:
        return _archive(log, newest, store)
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"What there is of {log.origin} cannot be read: {error}") from error
    except ArchivedFactLost as error:
        raise ArchiveDiffers(
            f"A leaf of {log.origin} has no text in the database, and {store} does not give what was sealed: it was emptied, or this "
            "is not the archive for which months were dropped. Then copy all objects of that one first."
        ) from error
    except ArchivedFactUnavailable as error:
        raise ArchiveUnavailable(
            f"{store} does not answer for leaves of {log.origin} that have no text in the database. Run it again when it does; if "
            "months were dropped for another archive, copy all objects of that one first."
        ) from error


@dataclass(frozen=True, slots=True)
class ArchivedHead:
    """``leaves``: how many of a log nobody needs from the database. ``checkpoint``: the archive's, which covers them."""

    leaves: int
    checkpoint: Checkpoint


def find_archived_head(log: Log, store: ObjectStore) -> ArchivedHead | None:
    """What of this log is in full bundles below the archive's checkpoint, which the hub continues and somebody outside has seen; the
    hub's log has to say that it was archived. Acts hub-wide.

    Raises :class:`ArchiveDiffers` and :class:`ArchiveUnavailable`.
    """
    try:
        there = store.read(f"{log_name(log.pk)}/{CHECKPOINT}")
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"The archive's checkpoint of {log.origin} cannot be read: {error}") from error
    if there is None:
        return None
    head = _open(there.decode("utf-8", "replace"), reader.list_vkeys(log.origin), log, "The archive's checkpoint")
    if _frontier_of(log, head.size).root() != head.root:
        raise ArchiveDiffers(f"{log.origin} does not continue the {head.size} leaves that its archive has.")
    checkpoint = Checkpoint.objects.filter(tenant_id=log.pk, size=head.size, global_index__lt=_size_seen()).first()
    leaves = min(head.size // TILE_WIDTH * TILE_WIDTH, count_archived_leaves(log.pk))
    return ArchivedHead(leaves, checkpoint) if leaves and checkpoint is not None else None


def _size_seen() -> int:
    """How much of the global log somebody outside has seen whom the settings name; 0 when any of them refuses what there is now."""
    if list_refusing_anchors():
        return 0
    return max(_select_anchors().values_list("size", flat=True), default=0)


def list_refusing_anchors() -> list[str]:
    """Who outside has seen another history than the hub has, of those whom the settings name."""
    return list(_select_anchors().exclude(refused_at=None).order_by("name").values_list("name", flat=True))


def _select_anchors() -> QuerySet[Anchor]:
    return Anchor.objects.filter(name__in=[each.name for each in load_anchor_targets()])


def check_bundle(log: Log, store: ObjectStore, n: int, checkpoint: Checkpoint) -> list[bytes]:
    """The hashes of the leaves of a full bundle as it lies in the archive now; they lead to the checkpoint."""
    name, first = f"{log_name(log.pk)}/{TilePath(ENTRIES, n)}", n * TILE_WIDTH
    try:
        hashes = [leaf_hash(leaf) for leaf in unpack_entries(store.read(name) or b"")]
        if b"".join(hashes) != reader.read_tile(log.pk, 0, n):
            raise ArchiveDiffers(f"{name} does not have the leaves of {log.origin}.")
        path = inclusion_proof(reader.load_tree(log.pk), first, checkpoint.size)
        verify_inclusion(hashes[0], first, checkpoint.size, path, bytes(checkpoint.root))
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"{name} does not lead to what was signed: {error}") from error
    return hashes


def _find_anchored_checkpoint(tenant_id: UUID) -> Checkpoint | None:
    """The newest of which a proof can be had: the last ones get into the global log in a moment."""
    anchor = reader.latest_checkpoint(GLOBAL_LOG)
    found = Checkpoint.objects.filter(tenant_id=tenant_id, global_index__lt=anchor.size if anchor else 0)
    return found.order_by("-size").first()


def _archive(log: Log, newest: Checkpoint, store: ObjectStore) -> ArchivedRange | None:
    folder, vkeys = log_name(log.pk), reader.list_vkeys(log.origin)
    head = _open(newest.note, vkeys, log, "The hub's newest checkpoint")
    there = store.read(f"{folder}/{CHECKPOINT}")
    before = None
    if there is not None:
        before = _open(there.decode("utf-8", "replace"), vkeys, log, "The archive's checkpoint")
    start = before.size if before is not None else 0
    if start > head.size or (before is not None and _frontier_of(log, start).root() != before.root):
        raise ArchiveDiffers(f"{log.origin} does not continue the {start} leaves that its archive has.")
    if not _has_news(log.pk, start, head.size):
        return None
    _check_stored(log, _frontier_of(log, start), head)
    digests = {
        str(path): hashlib.sha256(_copy_tile(log.pk, path, f"{folder}/{path}", store)).hexdigest()
        for path in iter_tiles(head.size)
        if _is_new(path, start)
    }
    rows = _read_back(folder, store, start, head.size)
    for finding in check_log(rows, [head], frontier=_frontier_of(log, start)):
        at = "" if finding.index is None else f" Leaf {finding.index}."
        raise ArchiveDiffers(f"What the archive has of {log.origin} is not what was signed. {finding.sentence}{at}")
    listed = "".join(f"{digest}  {path}\n" for path, digest in digests.items())
    found = ArchivedRange(start, head.size, len(digests), f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}")
    _tell(log, found, store)
    _write_heads(folder, store, newest, vkeys)
    return found


def _open(note: str, vkeys: list[str], log: Log, what: str) -> notes.Checkpoint:
    try:
        return open_checkpoint(note, vkeys, origin=log.origin)
    except InvalidEvidence as error:
        raise ArchiveDiffers(f"{what} of {log.origin} is not one that the hub has signed: {error}") from error


def _frontier_of(log: Log, size: int) -> Frontier:
    """The roots of the complete subtrees of the first ``size`` leaves, from the tiles."""
    tree, stack, start = reader.load_tree(log.pk), [], 0
    try:
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                stack.append(tree.node(level, start >> level))
                start += 1 << level
    except InvalidEvidence as error:
        raise ArchiveDiffers(
            f"{log.origin} does not continue the {size} leaves that its archive has: {error}"
        ) from error
    return Frontier(size, stack)


def _has_news(tenant_id: UUID, start: int, stop: int) -> bool:
    """Whether any of these leaves is about something else than archives: what a run says of itself makes no other one necessary."""
    added = Seal.objects.filter(tenant_id=tenant_id, leaf_index__gte=start, leaf_index__lt=stop)
    return start < stop and (added.count() < stop - start or added.exclude(fact__kind=Kind.LOG_ARCHIVED).exists())


def _check_stored(log: Log, frontier: Frontier, head: notes.Checkpoint) -> None:
    """Before anything is written, since it stays: that the hub's leaves lead to its tiles and to the root that was signed."""
    tree = reader.load_tree(log.pk)

    def compare(level: int, index: int, hash: bytes) -> None:
        if tree.node(level, index) != hash:
            raise ArchiveDiffers(
                f"The leaves of {log.origin} are not those of its tiles; the first is {frontier.size}."
            )

    for index, leaf, _ in reader.iter_leaves(log.pk, frontier.size, head.size):
        if index != frontier.size:
            raise ArchiveDiffers(f"Leaf {frontier.size} of {log.origin} is missing.")
        frontier.append_many([leaf_hash(leaf)], compare)
    if (frontier.size, frontier.root()) != (head.size, head.root):
        raise ArchiveDiffers(f"The {frontier.size} leaves of {log.origin} do not have the root that was signed.")


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
        raise ArchiveDiffers(f"{name} lies in the archive otherwise than it is in the hub.")
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


def _tell(log: Log, found: ArchivedRange, store: ObjectStore) -> None:
    """In the hub's own log: where an archive is concerns no tenant. Before the checkpoint is replaced, so that no range is untold."""
    with transaction.atomic():
        evidence.record(
            kind=Kind.LOG_ARCHIVED,
            subject=f"log:{log_name(log.pk)}",
            actor=Principal.system("archive", tenant_id=NO_TENANT),
            data=ArchivedLog(
                place=str(store), start=found.start, stop=found.stop, objects=found.objects, digest=found.digest
            ),
        )


def _write_heads(folder: str, store: ObjectStore, newest: Checkpoint, vkeys: list[str]) -> None:
    """What says how far the log has come; the checkpoint last, since the next run begins there."""
    store.replace(f"{folder}/{VKEYS}", "".join(f"{vkey}\n" for vkey in vkeys).encode())
    store.replace(f"{folder}/{GLOBAL}", reader.build_anchor_proof(newest).encode())
    store.replace(f"{folder}/{CHECKPOINT}", newest.note.encode())
