"""Stored leaves: the leaves of a log, made anew from what is stored.

Of a tenant's log: the texts of its facts in the order of their seals. Of the global log: the texts of the tenants' checkpoints.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import DataError

from evidence.integrity import column_types
from evidence.integrity.columns import COLUMNS, FactRow, columns_that_differ
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.kinds import PAIR
from evidence.log.reader import select_leaves
from evidence.models import GLOBAL_LOG, Checkpoint, Log, Seal
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.notes import split_note
from evidence.verify.problems import InvalidEvidence
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.archives.leaves import ArchivedBundles


# Leaves are canonical JSON: there is one way to write it. 26 letters hold 130 bits and an id has 128, so the first is 7 at most.
_VALUES = re.compile(rb'"snapshot":"(snp_[0-7][0-9a-hjkmnp-tv-z]{25})"')


@dataclass(slots=True)
class StoredLeaf:
    """``hash``: of its text; None where that is nowhere. ``pair``: of a Begin or an End, the call and the kind. ``committed``: ids of
    the stored values that it commits to. ``unread``: its text is in the archive, which does not answer; the hash is what its row says.
    """

    index: int
    hash: bytes | None
    wrong: list[IntegrityFinding]
    pair: tuple[UUID, str] | None = None
    committed: list[bytes] = field(default_factory=list)
    unread: bool = False


def iter_stored_leaves(tenant_id: UUID, start: int, stop: int, archive: ArchivedBundles) -> Iterator[StoredLeaf]:
    """Those of ``start`` … ``stop`` - 1 that are there, in order; what is missing or doubled the caller sees by the index."""
    return _checkpoints(start, stop) if tenant_id == GLOBAL_LOG else _facts(tenant_id, start, stop, archive)


def why_missing(tenant_id: UUID, index: int) -> IntegrityFinding:
    """What is not there of a leaf that is not there."""
    if tenant_id == GLOBAL_LOG:
        return IntegrityFinding(FindingCode.CHECKPOINT_MISSING, index)
    seal = Seal.objects.filter(tenant_id=tenant_id, leaf_index=index).first()
    if seal is None:
        return IntegrityFinding(FindingCode.SEAL_MISSING, index)
    return IntegrityFinding(FindingCode.FACT_MISSING, index, encode("fct", seal.fact_id))


def _facts(tenant_id: UUID, start: int, stop: int, archive: ArchivedBundles) -> Iterator[StoredLeaf]:
    try:
        found = list(select_leaves(tenant_id, start, stop).values_list("seal__leaf_index", *COLUMNS))
    except (DataError, ValueError):  # a column holds what cannot be: a time that never comes, an id that is none
        middle = (start + stop) // 2
        if start < middle:
            yield from _facts(tenant_id, start, middle, archive)
            yield from _facts(tenant_id, middle, stop, archive)
        return
    mistyped, seals = column_types.mistyped_facts(tenant_id, start, stop), column_types.of_seals(tenant_id, start, stop)
    for index, *columns in found:
        row = FactRow._make([*columns[:-2], bytes(columns[-2]), bytes(columns[-1])])
        wrong = []
        if index in mistyped:
            wrong.append(IntegrityFinding(FindingCode.FACT_TYPE, index, mistyped[index]))
        if index in seals:
            wrong.append(IntegrityFinding(FindingCode.ROW_TYPE, index, f"seal: {seals[index]}"))
        pair = (row.invocation_id, row.kind) if row.kind in PAIR and row.invocation_id else None
        if not row.leaf and row.invocation_id is not None:  # others never leave the database
            try:
                row = row._replace(leaf=archive.read_leaf(index))
            except ArchivedFactUnavailable:
                yield StoredLeaf(index, row.leaf_hash, wrong, pair, unread=True)
                continue
            if not row.leaf:
                wrong.append(IntegrityFinding(FindingCode.FACT_MISSING, index, encode("fct", row.id)))
                yield StoredLeaf(index, None, wrong, pair)
                continue
        hash = hashlib.sha256(b"\x00" + row.leaf).digest()
        if hash != row.leaf_hash:
            wrong.append(IntegrityFinding(FindingCode.FACT_HASH, index, encode("fct", row.id)))
        different = columns_that_differ(row)
        if row.tenant_id != tenant_id and "tenant_id" not in different:
            different.append("tenant_id")
        if different:
            wrong.append(IntegrityFinding(FindingCode.FACT_COLUMNS, index, ", ".join(different)))
        yield StoredLeaf(index, hash, wrong, pair, _VALUES.findall(row.leaf))


def _checkpoints(start: int, stop: int) -> Iterator[StoredLeaf]:
    """Beside its text, a checkpoint must belong to the log that it names."""
    rows = Checkpoint.objects.filter(global_index__gte=start, global_index__lt=stop).order_by("global_index")
    found = list(rows.defer("created_at"))
    origins = dict(Log.objects.filter(pk__in={row.tenant_id for row in found}).values_list("pk", "origin"))
    for row in found:
        assert row.global_index is not None
        wrong = []
        try:
            text, _ = split_note(row.note)
        except InvalidEvidence as error:
            text = ""
            wrong.append(IntegrityFinding(FindingCode.CHECKPOINT_COLUMNS, row.global_index, str(error)[:200]))
        if text.partition("\n")[0] != origins.get(row.tenant_id):
            wrong.append(IntegrityFinding(FindingCode.CHECKPOINT_COLUMNS, row.global_index, "origin"))
        yield StoredLeaf(row.global_index, hashlib.sha256(b"\x00" + text.encode()).digest(), wrong)
