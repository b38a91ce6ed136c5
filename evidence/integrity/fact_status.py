"""Fact status: where in the log one fact is, and whether it is still what was sealed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidence.integrity import column_types
from evidence.integrity.columns import COLUMNS, FactRow, columns_that_differ
from evidence.integrity.findings import FindingCode
from evidence.log.reader import read_tile
from evidence.models import Checkpoint, Seal, Verification
from evidence.verify.merkle import HASH_BYTES, TILE_WIDTH, leaf_hash

if TYPE_CHECKING:
    from evidence.models import Fact


@dataclass(frozen=True, slots=True)
class FactStatus:
    """``checkpoint``: the first that covers it. ``wrong``: sentences and names of columns; empty for one that is as it was sealed."""

    index: int | None
    checkpoint: Checkpoint | None
    verified: Verification | None
    wrong: list[tuple[str, str]]


def decode_leaf(leaf: bytes) -> Any:
    """What a leaf says; a text when somebody has changed it so that it is no JSON any more."""
    try:
        return json.loads(leaf)
    except (ValueError, RecursionError):
        return leaf.decode(errors="replace")


def load_fact_status(fact: Fact) -> FactStatus:
    row = FactRow._make([*(getattr(fact, name) for name in COLUMNS[:-2]), bytes(fact.leaf), bytes(fact.leaf_hash)])
    wrong = []
    different = columns_that_differ(row)
    if different:
        wrong.append((str(FindingCode.FACT_COLUMNS.label), ", ".join(different)))
    hash = leaf_hash(row.leaf)
    if hash != row.leaf_hash:
        wrong.append((str(FindingCode.FACT_HASH.label), ""))
    seal = Seal.objects.filter(pk=fact.pk, tenant_id=fact.tenant_id).first()
    if seal is None:
        return FactStatus(None, None, None, wrong)
    mistyped = column_types.mistyped_facts(fact.tenant_id, seal.leaf_index, seal.leaf_index + 1)
    wrong += [(str(FindingCode.FACT_TYPE.label), names) for names in mistyped.values()]
    n, place = divmod(seal.leaf_index, TILE_WIDTH)
    stored = (read_tile(fact.tenant_id, 0, n) or b"")[place * HASH_BYTES : (place + 1) * HASH_BYTES]
    if stored != hash:
        wrong.append((str(FindingCode.LEAF_CHANGED.label), ""))
    covers = Checkpoint.objects.filter(tenant_id=fact.tenant_id, size__gt=seal.leaf_index).order_by("size").first()
    passes = Verification.objects.filter(
        tenant_id=fact.tenant_id, start__lte=seal.leaf_index, position__gt=seal.leaf_index
    )
    return FactStatus(seal.leaf_index, covers, passes.order_by("-pk").first(), wrong)
