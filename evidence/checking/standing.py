"""Where in the log is one fact, and is it still what was sealed?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidence.checking.columns import COLUMNS, Row, columns_that_differ
from evidence.checking.findings import Wrong
from evidence.log.reading import tile
from evidence.models import Checkpoint, Seal, Verification
from evidence.verify.merkle import HASH_BYTES, TILE_WIDTH, leaf_hash

if TYPE_CHECKING:
    from evidence.models import Fact


@dataclass(frozen=True, slots=True)
class Standing:
    """``checkpoint``: the first that covers it. ``wrong``: sentences and names of columns; empty for one that is as it was sealed."""

    index: int | None
    checkpoint: Checkpoint | None
    verified: Verification | None
    wrong: list[tuple[str, str]]


def said_by(leaf: bytes) -> Any:
    """What a leaf says; a text when somebody has changed it so that it is no JSON any more."""
    try:
        return json.loads(leaf)
    except (ValueError, RecursionError):
        return leaf.decode(errors="replace")


def standing_of(fact: Fact) -> Standing:
    row = Row._make([*(getattr(fact, name) for name in COLUMNS[:-2]), bytes(fact.leaf), bytes(fact.leaf_hash)])
    wrong = []
    different = columns_that_differ(row)
    if different:
        wrong.append((str(Wrong.FACT_COLUMNS.label), ", ".join(different)))
    hash = leaf_hash(row.leaf)
    if hash != row.leaf_hash:
        wrong.append((str(Wrong.FACT_HASH.label), ""))
    seal = Seal.objects.filter(pk=fact.pk, tenant_id=fact.tenant_id).first()
    if seal is None:
        return Standing(None, None, None, wrong)
    n, place = divmod(seal.leaf_index, TILE_WIDTH)
    stored = (tile(fact.tenant_id, 0, n) or b"")[place * HASH_BYTES : (place + 1) * HASH_BYTES]
    if stored != hash:
        wrong.append((str(Wrong.LEAF_CHANGED.label), ""))
    covers = Checkpoint.objects.filter(tenant_id=fact.tenant_id, size__gt=seal.leaf_index).order_by("size").first()
    passes = Verification.objects.filter(
        tenant_id=fact.tenant_id, start__lte=seal.leaf_index, position__gt=seal.leaf_index
    )
    return Standing(seal.leaf_index, covers, passes.order_by("-pk").first(), wrong)
