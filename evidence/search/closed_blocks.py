"""Closed blocks: the index of months that are over is made smaller.

A block to which nothing is added any more, because it is full, and whose month is over, is closed. Ranges of such blocks are noted
first (:class:`~evidence.models.ClosedRange`), and only after no search can be left that began before that do entries go from rows to
pages (:mod:`evidence.search.posting_pages`), some at a time: each of them is in one place or the other at any moment. What many leaves
of a block have stays a row: as a map of bits it is as small as it can be, and pages would be read for nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, connection, transaction

from evidence.models import ClosedRange, IndexBlock, Indexed, Posting, PostingPage
from evidence.search.posting_pages import ENTRIES, FEW_BYTES, Entry, cut_pages
from evidence.search.postings import BLOCK
from kernel.database.connections import database_time
from kernel.ids import lowest_id

if TYPE_CHECKING:
    import threading
    from datetime import datetime
    from uuid import UUID

AT_ONCE = 200 * ENTRIES  # entries of one transaction
SEARCHES_END = timedelta(minutes=5)  # far longer than a search may take

_SOME = """
    SELECT tag, block, places FROM evidence_posting
    WHERE tenant_id = %(tenant)s AND (tag, block) > (%(tag)s, %(block)s) AND block BETWEEN %(first)s AND %(last)s
      AND length(places) <= %(few)s ORDER BY tag, block LIMIT %(most)s
"""
_REMOVE = """
    DELETE FROM evidence_posting
    WHERE tenant_id = %(tenant)s AND (tag, block) > (%(tag)s, %(block)s) AND (tag, block) <= (%(last_tag)s, %(last_in)s)
      AND block BETWEEN %(first)s AND %(last)s AND length(places) <= %(few)s
"""


def close_blocks(tenant_id: UUID, *, until: datetime) -> None:
    """Note the blocks that have become closed since the last time: those that are full, and all of whose facts are older."""
    before = ClosedRange.objects.filter(tenant_id=tenant_id).order_by("-first_block").first()
    first, full = before.last_block + 1 if before else 0, _count_full(tenant_id)
    rows = IndexBlock.objects.filter(tenant_id=tenant_id, number__gte=first, number__lt=full)
    # What follows one that is still open waits with it, so that a range has no gaps.
    open_one = rows.filter(last_id__gte=lowest_id(until)).order_by("number").values_list("number", flat=True).first()
    end = full if open_one is None else open_one
    if end <= first:
        return
    try:
        with transaction.atomic():
            ClosedRange.objects.create(
                tenant_id=tenant_id, first_block=first, last_block=end - 1, closed_at=database_time()
            )
    except IntegrityError:
        return  # another process has


def _count_full(tenant_id: UUID) -> int:
    size = Indexed.objects.filter(tenant_id=tenant_id).values_list("size", flat=True).first() or 0
    return int(size) // BLOCK


@transaction.atomic
def pack_some(tenant_id: UUID, first_block: int) -> bool:
    """Put the next entries of a range into pages; returns whether there may be more. Nothing, while another process is at it."""
    mine = ClosedRange.objects.filter(tenant_id=tenant_id, first_block=first_block, is_packed=False)
    found = mine.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked).first()
    if found is None:
        return False
    asked = {
        "tenant": Posting._meta.get_field("tenant_id").get_db_prep_value(tenant_id, connection),
        "tag": bytes(found.tag),
        "block": found.block,
        "first": found.first_block,
        "last": found.last_block,
        "few": FEW_BYTES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SOME, {**asked, "most": AT_ONCE})
        entries = [Entry(bytes(tag), block, bytes(places)) for tag, block, places in cursor.fetchall()]
        if entries:
            PostingPage.objects.bulk_create(cut_pages(entries, tenant_id=tenant_id, first_block=first_block))
            cursor.execute(_REMOVE, {**asked, "last_tag": entries[-1].tag, "last_in": entries[-1].block})
            if cursor.rowcount != len(entries):
                raise RuntimeError(f"{cursor.rowcount} postings were to go where {len(entries)} are in pages.")
            found.tag, found.block = entries[-1].tag, entries[-1].block
    found.is_packed = len(entries) < AT_ONCE
    mine.update(tag=found.tag, block=found.block, is_packed=found.is_packed)
    return not found.is_packed


def pack_closed_blocks(stop: threading.Event | None = None) -> None:
    """Of all tenants: note what is closed, and pack what was noted long enough ago. Acts hub-wide."""
    month = database_time().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for tenant_id in Indexed.objects.filter(size__gte=BLOCK).values_list("tenant_id", flat=True):
        close_blocks(tenant_id, until=month)
    due = ClosedRange.objects.filter(is_packed=False, closed_at__lte=database_time() - SEARCHES_END)
    for tenant_id, first_block in due.values_list("tenant_id", "first_block"):
        while (stop is None or not stop.is_set()) and pack_some(tenant_id, first_block):
            pass
