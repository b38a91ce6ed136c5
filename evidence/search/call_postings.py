"""Call postings: which leaves are about a call, as the index would have it.

Facts name their call in a column with an index of its own, so the index of searches does not have the call's id once more for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.models import Seal
from evidence.search import postings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID


def find_call_postings(
    tenant_id: UUID, calls: Sequence[UUID], *, size: int, block_size: int
) -> dict[UUID, dict[int, bytes]]:
    """By call and block, among the first ``size`` leaves."""
    if not calls:
        return {}
    bits: dict[UUID, dict[int, int]] = {call: {} for call in calls}
    seals = Seal.objects.filter(tenant_id=tenant_id, fact__invocation_id__in=calls, leaf_index__lt=size)
    for call, index in seals.values_list("fact__invocation_id", "leaf_index"):
        block, place = divmod(index, block_size)
        bits[call][block] = bits[call].get(block, 0) | 1 << place
    return {call: {block: postings.encode(each) for block, each in found.items()} for call, found in bits.items()}
