"""Bucket rows: where the tags that a search asks for are, of those that lie in buckets.

All of the log at once and with one statement: each tag is in a few buckets of each level, and whatever is merged meanwhile, one
statement sees it where it was or where it is. What becomes too frequent for buckets goes to rows, so a search reads those after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import Q

from evidence.models import PostingBucket
from evidence.search import postings
from evidence.search.buckets import BITS, find_in_bucket, find_parts
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.statement_limits import check_time_left

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from evidence.search.tags import TagSpan

_STATEMENT = b"""
    SELECT found.* FROM unnest(%(levels)s::smallint[], %(lows)s::integer[], %(highs)s::integer[]) AS asked(level, low, high)
    CROSS JOIN LATERAL (
        SELECT first, content FROM evidence_postingbucket
        WHERE tenant_id = %(tenant)s AND level = asked.level AND part BETWEEN asked.low AND asked.high OFFSET 0
    ) AS found
"""


def find_bucket_postings(
    tenant_id: UUID, spans: Sequence[TagSpan], *, block_size: int
) -> dict[bytes, dict[int, bytes]]:
    """By tag and block."""
    bits: dict[bytes, dict[int, int]] = {}
    wanted = [span for span in spans if find_parts(span, 0) is not None]
    for first, content in _read(tenant_id, wanted):
        for span in wanted:
            for tag, places in find_in_bucket(content, span, first=first).items():
                of_tag = bits.setdefault(tag, {})
                for block, place in (divmod(place, block_size) for place in places):
                    of_tag[block] = of_tag.get(block, 0) | 1 << place
    return {tag: {block: postings.encode(each) for block, each in of_tag.items()} for tag, of_tag in bits.items()}


def _read(tenant_id: UUID, spans: Sequence[TagSpan]) -> Iterable[tuple[int, bytes]]:
    asked = {(level, *parts) for level in range(len(BITS)) for span in spans if (parts := find_parts(span, level))}
    if not asked:
        return []
    check_time_left()
    if connection.vendor == "postgresql":
        levels, lows, highs = (list(each) for each in zip(*sorted(asked), strict=True))
        return fetch_prepared(_STATEMENT, {"tenant": tenant_id, "levels": levels, "lows": lows, "highs": highs})
    condition = Q()
    for level, low, high in asked:
        condition |= Q(level=level, part__range=(low, high))
    rows = PostingBucket.objects.filter(condition, tenant_id=tenant_id).values_list("first", "content")
    return ((first, bytes(content)) for first, content in rows)
