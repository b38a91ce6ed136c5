"""Posting pages: how what few leaves have is kept in few bytes, once nothing is added to it any more.

Most tags are an id or a hash that one call has. As rows of :class:`~evidence.models.Posting` each of them takes 170 bytes, of which
three say which leaf it is: the rest is the tag twice (the row's and the index's), the tenant and what a row costs. Of blocks that are
closed (:mod:`evidence.search.closed_blocks`) such entries lie together, in the order of their tags: each says how much of the tag
before it it begins with, and a page of them is compressed.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from django.db import connection

from evidence.models import PostingPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from evidence.search.tags import TagSpan

FEW_BYTES = 4  # of places: two leaves of a block
ENTRIES = 96  # of a page, so that a row of it needs no second one
_LONG = 255


class Entry(NamedTuple):
    tag: bytes
    block: int
    places: bytes  # as :mod:`evidence.search.postings` writes them


def pack_page(entries: Sequence[Entry], *, first_block: int) -> bytes:
    raw, before = bytearray(), b""
    for tag, block, places in entries:
        shared = _count_shared(before, tag)
        raw += bytes((shared, len(places)))
        raw += (len(tag) - shared).to_bytes(2) + tag[shared:] + (block - first_block).to_bytes(4) + places
        before = tag
    return zlib.compress(bytes(raw), 9)


def unpack_page(content: bytes, *, first_block: int) -> Iterator[Entry]:
    raw, at, tag = zlib.decompress(content), 0, b""
    while at < len(raw):
        shared, count = raw[at], raw[at + 1]
        end = at + 4 + int.from_bytes(raw[at + 2 : at + 4])
        tag = tag[:shared] + raw[at + 4 : end]
        at = end + 4 + count
        yield Entry(tag, first_block + int.from_bytes(raw[end : end + 4]), raw[end + 4 : at])


def _count_shared(one: bytes, other: bytes) -> int:
    most = min(len(one), len(other), _LONG)
    return next((n for n in range(most) if one[n] != other[n]), most)


def cut_pages(entries: Sequence[Entry], *, tenant_id: UUID, first_block: int) -> list[PostingPage]:
    """``entries`` of one range of blocks, in their order."""
    return [
        PostingPage(
            tenant_id=tenant_id,
            first_block=first_block,
            tag=some[0].tag,
            block=some[0].block,
            content=pack_page(some, first_block=first_block),
        )
        for some in (entries[at : at + ENTRIES] for at in range(0, len(entries), ENTRIES))
    ]


# The pages of each range that may have a tag of a span: those that begin within it, and the one before them. An index finds both.
_OF_SPAN = """
    SELECT r.first_block, p.content FROM evidence_closedrange r
    JOIN evidence_postingpage p ON p.tenant_id = r.tenant_id AND p.first_block = r.first_block
    WHERE r.tenant_id = %s AND r.first_block <= %s AND r.last_block >= %s AND p.tag < %s AND p.tag >= COALESCE(
        (SELECT q.tag FROM evidence_postingpage q
         WHERE q.tenant_id = r.tenant_id AND q.first_block = r.first_block AND q.tag < %s ORDER BY q.tag DESC LIMIT 1), %s)
"""


def find_entries(tenant_id: UUID, spans: Iterable[TagSpan], low: int, high: int) -> Iterator[Entry]:
    """Those that the pages have of these tags, in blocks from ``low`` to ``high``; some of them more than once."""
    tenant = PostingPage._meta.get_field("tenant_id").get_db_prep_value(tenant_id, connection)
    asked = list(spans)
    values = [value for span in asked for value in (tenant, high, low, span.high, span.low, span.low)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([_OF_SPAN] * len(asked)), values)
        pages = {(first, bytes(content)) for first, content in cursor.fetchall()}
    for first, content in pages:
        for entry in unpack_page(content, first_block=first):
            if low <= entry.block <= high and any(span.holds(entry.tag) for span in asked):
                yield entry
