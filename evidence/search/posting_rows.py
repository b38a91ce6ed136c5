"""Posting rows: those of some tags in some blocks, as they are stored.

Several statements of a search ask for them, each of which takes less to run than to write and to plan: on PostgreSQL they are
prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Q

from evidence.models import Posting
from kernel.database.prepared_statements import fetch_prepared_together
from kernel.database.statement_limits import check_time_left

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from evidence.search.tags import TagSpan

_COLUMNS = "SELECT tag, block, places FROM evidence_posting WHERE tenant_id = %(tenant)s AND "
_OF_TAGS, _OF_SPAN = "tag = ANY(%(tags)s)", "tag >= %(begins)s AND tag < %(ends)s"
_IN_RANGE, _AT_BLOCKS = " AND block BETWEEN %(low)s AND %(high)s", " AND block = ANY(%(blocks)s::integer[])"


def read_posting_rows(
    tenant_id: UUID, spans: Sequence[TagSpan], blocks: Sequence[int]
) -> Iterable[tuple[bytes, int, bytes]]:
    """Tag, block and places; twice, where spans overlap."""
    low, high = min(blocks), max(blocks)
    # Each block that is named is looked up for each tag; a range is read on.
    is_range = len(blocks) * 4 > high - low
    if connection.vendor == "postgresql":
        return _read_prepared(tenant_id, spans, {"low": low, "high": high} if is_range else {"blocks": list(blocks)})
    condition = Q(tag__in=[span.low for span in spans if span.is_one])
    for span in spans:
        if not span.is_one:
            condition |= Q(tag__gte=span.low, tag__lt=span.high)
    within = Q(block__range=(low, high)) if is_range else Q(block__in=blocks)
    rows = Posting.objects.filter(condition, within, tenant_id=tenant_id).values_list("tag", "block", "places")
    return ((bytes(tag), block, bytes(places)) for tag, block, places in rows)


def _read_prepared(
    tenant_id: UUID, spans: Sequence[TagSpan], within: dict[str, Any]
) -> Iterable[tuple[bytes, int, bytes]]:
    asked, place = {"tenant": tenant_id, **within}, _AT_BLOCKS if "blocks" in within else _IN_RANGE
    of_tags, of_span = (f"{_COLUMNS}{which}{place}".encode() for which in (_OF_TAGS, _OF_SPAN))
    tags = [span.low for span in spans if span.is_one]
    # A span for each statement: what begins and ends by a row of another table is not looked up in the index.
    statements = [(of_span, asked | {"begins": span.low, "ends": span.high}) for span in spans if not span.is_one]
    if tags:
        statements.append((of_tags, asked | {"tags": tags}))
    check_time_left()
    for rows in fetch_prepared_together(*statements):
        yield from rows
