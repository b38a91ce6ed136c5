"""Drops: the leaves of a month that is over leave the database once they are in the archive.

The table of the month is replaced by one with the same rows, in which the leaves of calls are empty: lists, searches by columns,
pairs and proofs go on without the archive, and whoever reads a leaf gets it from there (:mod:`evidence.archives.leaves`). What is not
archived yet keeps its leaf, and so do facts that are about no call, by which the hub itself goes: keys, grants, who was forgotten. A
month is one transaction of who owns the tables: a run that is cut short has done nothing to it. A month that is not as it was sealed
stays, and keeps no other from its turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction

from evidence.archives.services import ArchiveDiffers, check_bundle, find_archived_head, list_archived_logs
from evidence.models import Fact
from evidence.models.facts import CLOCKS_DIFFER_MS
from evidence.months.partitions import Month, list_months, measure_table, replace_month
from evidence.packed_leaves import unpack_leaf
from evidence.verify.merkle import TILE_WIDTH, leaf_hash
from kernel.fault_injection import inject_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.backends.utils import CursorWrapper

    from evidence.archives.object_stores import ObjectStore
    from evidence.archives.services import ArchivedHead
    from evidence.models import Log

# Which transaction wrote a row: who changes the row writes it anew.
_WRITER = "f.xmin::text::bigint"
_TILES_AT_ONCE = 4  # of a statement: a megabyte or three
# A leaf leaves that is about a call, is in the archive, and is still there.
_LEAVES = f"""
    SELECT s.leaf_index, f.leaf_hash, f.leaf, {_WRITER}
    FROM {{table}} f JOIN evidence_seal s ON s.fact_id = f.id AND s.tenant_id = f.tenant_id
    WHERE f.tenant_id = %s AND s.leaf_index >= %s AND s.leaf_index < %s AND f.invocation_id IS NOT NULL AND length(f.leaf) > 0
    ORDER BY s.leaf_index
"""  # noqa: S608  a constant
# Between which leaves those of the month are.
_ENDS = """
    SELECT min(leaf_index), max(leaf_index) FROM evidence_seal WHERE tenant_id = %s AND leaf_index < %s
    AND fact_id >= (SELECT id FROM {table} ORDER BY id LIMIT 1) AND fact_id <= (SELECT id FROM {table} ORDER BY id DESC LIMIT 1)
"""
# What is about to leave, by the same: the table of the month beside the one that takes its place.
_LEAVING = f"""
    SELECT count(*), coalesce(sum({_WRITER}), 0)::bigint FROM {{table}} f JOIN {{new}} n ON n.id = f.id
    WHERE length(f.leaf) > 0 AND length(n.leaf) = 0
"""  # noqa: S608  a constant
_NAMES = [str(field.column) for field in Fact._meta.concrete_fields if field.column != "leaf"]
_COLUMNS = ", ".join([*_NAMES, "leaf"])
_ROWS = f"""
    SELECT {", ".join(f"f.{name}" for name in _NAMES)},
    CASE WHEN f.invocation_id IS NOT NULL AND s.leaf_index < a.leaves THEN ''::bytea ELSE f.leaf END
    FROM {{table}} f LEFT JOIN evidence_seal s ON s.fact_id = f.id AND s.tenant_id = f.tenant_id
    LEFT JOIN archived_heads a ON a.tenant_id = f.tenant_id
    WHERE NOT EXISTS (SELECT FROM {{new}} n WHERE n.id = f.id) ORDER BY f.id
"""  # noqa: S608  names of columns only


@dataclass(frozen=True, slots=True)
class CheckedLeaves:
    """How many, and the sum of the transactions that wrote their rows, which is another one once any of them was changed."""

    count: int = 0
    writers: int = 0

    def __add__(self, other: CheckedLeaves) -> CheckedLeaves:
        return CheckedLeaves(self.count + other.count, self.writers + other.writers)


@dataclass(frozen=True, slots=True)
class DroppedMonth:
    """``before`` and ``after``: bytes of its table."""

    table: str
    leaves: int
    before: int
    after: int


def drop_archived_months(store: ObjectStore) -> Iterator[DroppedMonth]:
    """Drop what leaves of months that are over, one after the other. Acts hub-wide, as the owner of the tables, and alone:
    :func:`evidence.archives.turns.take_turn_at_archive`.

    Raises :class:`~evidence.archives.services.ArchiveDiffers`, for months when all others have had their turn,
    :class:`~evidence.archives.object_stores.ArchiveUnavailable` and :class:`~evidence.months.partitions.MonthsBusy`.
    """
    heads = {log: head for log in list_archived_logs() if (head := find_archived_head(log, store))}
    over = datetime.now(UTC) - timedelta(milliseconds=CLOCKS_DIFFER_MS)
    with connection.cursor() as cursor:
        months = [month for month in list_months(cursor) if month.ends is not None and month.ends <= over]
    differing = list[str]()
    for month in months:
        try:
            dropped = _drop_month(month, heads, store)
        except ArchiveDiffers as error:
            differing.append(str(error))
            continue
        if dropped:
            yield dropped
    if differing:
        raise ArchiveDiffers("\n".join(differing))


def _drop_month(month: Month, heads: dict[Log, ArchivedHead], store: ObjectStore) -> DroppedMonth | None:
    checked = sum((_check_leaves(month, log, head, store) for log, head in heads.items()), CheckedLeaves())
    inject_fault("drop.checked")
    return _drop(month, {log.pk: head.leaves for log, head in heads.items()}, checked) if checked.count else None


def _check_leaves(month: Month, log: Log, head: ArchivedHead, store: ObjectStore) -> CheckedLeaves:
    """The leaves of this log that leave the month; each, as its row has it, was compared with what lies in the archive now.

    Some tiles a statement, so that no transaction is open while the archive is asked: that may take hours, and would keep what is
    deleted meanwhile; and so that the database puts no copy of the month aside. Who changes a row meanwhile is found before it leaves.
    """
    count, writers, n, hashes = 0, 0, -1, list[bytes]()
    for rows in _read_leaves(month, log, head.leaves):
        for index, hash, stored, writer in rows:
            if index // TILE_WIDTH != n:
                n = index // TILE_WIDTH
                hashes = check_bundle(log, store, n, head.checkpoint)
            if bytes(hash) != hashes[index % TILE_WIDTH]:
                raise ArchiveDiffers(f"Leaf {index} of {log.origin} is another one in the archive than in the hub.")
            if leaf_hash(unpack_leaf(bytes(stored))) != bytes(
                hash
            ):  # its column says nothing of what somebody wrote into the row
                raise ArchiveDiffers(
                    f"Leaf {index} of {log.origin} was changed in {month.table}, which shows as long as it is there: the month stays. "
                    "`manage.py verify_log` says what else was."
                )
            count, writers = count + 1, writers + writer
    return CheckedLeaves(count, writers)


def _read_leaves(month: Month, log: Log, leaves: int) -> Iterator[list[tuple[int, bytes, bytes, int]]]:
    with connection.cursor() as cursor:
        cursor.execute(_ENDS.format(table=month.table), [log.pk, leaves])
        first, last = cursor.fetchone()
    if first is None:
        return
    step = TILE_WIDTH * _TILES_AT_ONCE
    for begin in range(first // step * step, last + 1, step):
        with connection.cursor() as cursor:
            cursor.execute(_LEAVES.format(table=month.table), [log.pk, begin, min(begin + step, leaves)])
            rows = cursor.fetchall()
        yield rows


def _drop(month: Month, heads: dict[UUID, int], checked: CheckedLeaves) -> DroppedMonth:
    def compare(cursor: CursorWrapper, new: str) -> None:
        cursor.execute(_LEAVING.format(table=month.table, new=new))
        if CheckedLeaves(*cursor.fetchone()) != checked:
            raise ArchiveDiffers(
                f"Somebody has changed facts in {month.table} while they were compared with the archive: the month stays. "
                "`manage.py verify_log` says which; run this again."
            )

    with transaction.atomic(), connection.cursor() as cursor:
        before = measure_table(cursor, month.table)
        cursor.execute(
            "CREATE TEMPORARY TABLE archived_heads (tenant_id uuid PRIMARY KEY, leaves bigint) ON COMMIT DROP"
        )
        cursor.executemany("INSERT INTO archived_heads VALUES (%s, %s)", list(heads.items()))
        replace_month(
            connection,
            month,
            columns=_COLUMNS,
            rows=lambda new: _ROWS.format(table=month.table, new=new),
            compare=compare,
        )
        inject_fault("drop.before_commit")
        after = measure_table(cursor, month.table)
    return DroppedMonth(month.table, checked.count, before, after)
