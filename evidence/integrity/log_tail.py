"""Log tail: whether a log ends where it says, with nothing beyond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models.functions import Length

from evidence.integrity import column_types
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.signatures import verify_public_keys
from evidence.models import GLOBAL_LOG, Checkpoint, Seal, Tile
from evidence.verify.merkle import HASH_BYTES, TILE_LEVELS, TILE_WIDTH

if TYPE_CHECKING:
    from evidence.integrity.tree_walk import TreeWalk
    from evidence.models import Log


def verify_log_tail(walk: TreeWalk) -> list[IntegrityFinding]:
    """For a walk that has come to the end of ``walk.log``, in the snapshot that this row was read in."""
    found = [*_log_row(walk), *_newest_checkpoint(walk), *_beyond(walk.log), *_tile_lengths(walk.log)]
    if names := column_types.of_log(walk.tenant_id):
        found.append(IntegrityFinding(FindingCode.ROW_TYPE, None, f"log: {names}"))
    if walk.tenant_id == GLOBAL_LOG:
        found += verify_public_keys()
        found += [IntegrityFinding(FindingCode.ROW_TYPE, None, said) for said in column_types.of_rows_of_the_hub()]
    return found


def _last(log: Log) -> int | None:
    return log.size - 1 if log.size else None


def _log_row(walk: TreeWalk) -> list[IntegrityFinding]:
    log = walk.log
    made = {walk.made.to_bytes()} | ({walk.tiled.to_bytes()} if walk.tiled else set())
    return [] if bytes(log.frontier) in made else [IntegrityFinding(FindingCode.LOG_WRONG, _last(log), "frontier")]


def _newest_checkpoint(walk: TreeWalk) -> list[IntegrityFinding]:
    log = walk.log
    if log.size == 0 or Checkpoint.objects.filter(tenant_id=log.pk, size=log.size).exists():
        return []
    return [IntegrityFinding(FindingCode.CHECKPOINT_MISSING, _last(log), f"size {log.size}")]


def _beyond(log: Log) -> list[IntegrityFinding]:
    beyond = {
        "seals": Seal.objects.filter(tenant_id=log.pk, leaf_index__gte=log.size),
        "seals before 0": Seal.objects.filter(tenant_id=log.pk, leaf_index__lt=0),
        "checkpoints": Checkpoint.objects.filter(tenant_id=log.pk, size__gt=log.size),
        "checkpoints before 1": Checkpoint.objects.filter(tenant_id=log.pk, size__lte=0),
    }
    if log.pk == GLOBAL_LOG:
        beyond["noted checkpoints"] = Checkpoint.objects.filter(global_index__gte=log.size)
        beyond["noted checkpoints before 0"] = Checkpoint.objects.filter(global_index__lt=0)
    return [
        IntegrityFinding(FindingCode.BEYOND_END, _last(log), name) for name, rows in beyond.items() if rows.exists()
    ]


def _tile_lengths(log: Log) -> list[IntegrityFinding]:
    """Each level has as many tiles as it needs, full ones but the last."""
    found, count, level = [], 0, 0
    full = TILE_WIDTH * HASH_BYTES
    rows = Tile.objects.filter(tenant_id=log.pk).annotate(length=Length("hashes"))
    while hashes := log.size >> level * TILE_LEVELS:
        last, rest = divmod(hashes, TILE_WIDTH)
        wrong = rows.filter(level=level, n__lt=last).exclude(length=full).first()
        partial = rows.filter(level=level, n=last).first() if rest else None
        if wrong or (rest and (partial is None or partial.length != rest * HASH_BYTES)):
            found.append(
                IntegrityFinding(FindingCode.TILE_MISSING, _last(log), f"tile/{level}/{wrong.n if wrong else last}")
            )
        count += last + bool(rest)
        level += 1
    if rows.count() != count:
        found.append(IntegrityFinding(FindingCode.TILE_MISSING, _last(log), "the number of tiles"))
    return found
