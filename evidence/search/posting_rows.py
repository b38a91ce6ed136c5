"""Posting rows: those of some tags in some blocks, as they are stored, and how they are written.

Several questions of a search ask for them, each of which takes less to run than to write and to plan: on PostgreSQL they are prepared.
Each is one statement, however many spans of tags it has: how long a statement may take is counted anew for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Q

from evidence.models import Posting
from evidence.search import postings
from evidence.search.tags import merge_spans
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.statement_limits import check_time_left

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from evidence.search.tags import TagSpan

# OFFSET has each span looked up in the index by itself. Joined, all rows of these blocks are read and held against each span: so goes
# a plan that is made for any spans.
_STATEMENT = """
    SELECT tag, block, places FROM evidence_posting
    WHERE tenant_id = %(tenant)s AND tag = ANY(%(tags)s::bytea[]) AND {within}
    UNION ALL
    SELECT found.* FROM unnest(%(begins)s::bytea[], %(ends)s::bytea[]) AS span(begins, ends) CROSS JOIN LATERAL (
        SELECT tag, block, places FROM evidence_posting
        WHERE tenant_id = %(tenant)s AND tag >= span.begins AND tag < span.ends AND {within} OFFSET 0
    ) AS found
"""
_OF_RANGE = _STATEMENT.format(within="block BETWEEN %(low)s AND %(high)s").encode()
_OF_BLOCKS = _STATEMENT.format(within="block = ANY(%(blocks)s::integer[])").encode()


def read_posting_rows(
    tenant_id: UUID, spans: Sequence[TagSpan], blocks: Sequence[int]
) -> Iterable[tuple[bytes, int, bytes]]:
    """Tag, block and places, each once, though spans may overlap."""
    low, high = min(blocks), max(blocks)
    # Each block that is named is looked up for each tag; a range is read on.
    is_range = len(blocks) * 4 > high - low
    merged = merge_spans(spans)
    tags, wide = [span.low for span in merged if span.is_one], [span for span in merged if not span.is_one]
    if connection.vendor == "postgresql":
        asked: dict[str, Any] = {"tenant": tenant_id, "tags": tags}
        asked |= {"begins": [span.low for span in wide], "ends": [span.high for span in wide]}
        check_time_left()
        if is_range:
            return fetch_prepared(_OF_RANGE, asked | {"low": low, "high": high})
        return fetch_prepared(_OF_BLOCKS, asked | {"blocks": list(blocks)})
    condition = Q(tag__in=tags)
    for span in wide:
        condition |= Q(tag__gte=span.low, tag__lt=span.high)
    within = Q(block__range=(low, high)) if is_range else Q(block__in=blocks)
    rows = Posting.objects.filter(condition, within, tenant_id=tenant_id).values_list("tag", "block", "places")
    return ((bytes(tag), block, bytes(places)) for tag, block, places in rows)


_AT_ONCE = 500  # parameters of a statement; SQLite takes 999
_UPSERT = (
    "INSERT INTO evidence_posting (tenant_id, tag, block, places) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (tenant_id, tag, block) DO UPDATE SET places = excluded.places"
)


def read_block_rows(tenant_id: UUID, block: int, tags: list[bytes]) -> Iterable[tuple[bytes, int]]:
    """Which of these tags are in the block, and its leaves that have them."""
    for at in range(0, len(tags), _AT_ONCE):
        rows = Posting.objects.filter(tenant_id=tenant_id, block=block, tag__in=tags[at : at + _AT_ONCE])
        for tag, stored in rows.values_list("tag", "places"):
            yield bytes(tag), postings.decode(bytes(stored))


def add_posting_rows(tenant_id: UUID, block: int, bits: Mapping[bytes, int], *, had: bool) -> None:
    """These leaves of the block have these tags as well. ``had``: there may be rows of it already. In a transaction that has the
    tenant's index locked."""
    written = dict(bits)
    if had:
        for tag, stored in read_block_rows(tenant_id, block, list(bits)):
            written[tag] |= stored
    tenant = Posting._meta.get_field("tenant_id").get_db_prep_value(tenant_id, connection)
    with connection.cursor() as cursor:
        cursor.executemany(
            _UPSERT, [(tenant, tag, block, postings.encode(found)) for tag, found in sorted(written.items())]
        )
