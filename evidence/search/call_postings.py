"""Call postings: which leaves are about a call, as the index would have it.

Facts name their call in a column with an index of its own, so the index of searches does not have the call's id once more for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from evidence.models import Fact
from evidence.models.facts import oldest_fact_id
from evidence.search import postings
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.statement_limits import check_time_left

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

_LEAVES = b"""
    SELECT seal.leaf_index FROM evidence_fact AS fact JOIN evidence_seal AS seal ON seal.fact_id = fact.id
    WHERE fact.invocation_id = %s AND fact.id >= %s AND seal.tenant_id = %s AND seal.leaf_index < %s
"""


def find_call_postings(
    tenant_id: UUID, calls: Iterable[UUID], *, size: int, block_size: int
) -> dict[UUID, dict[int, bytes]]:
    """By call and block, among the first ``size`` leaves."""
    found = {}
    for call in calls:
        bits: dict[int, int] = {}
        written = [Fact._meta.pk.get_db_prep_value(id, connection) for id in (call, oldest_fact_id([call]), tenant_id)]
        check_time_left()
        for (index,) in fetch_prepared(_LEAVES, [*written, size]):
            block, place = divmod(index, block_size)
            bits[block] = bits.get(block, 0) | 1 << place
        found[call] = {block: postings.encode(each) for block, each in bits.items()}
    return found
