"""Bucket merges: how buckets get into the index, and those of short spans into those of longer ones.

The indexer writes one run for what it takes up at a time. Once a span of the next level is whole, what lies in the shorter ones is put
together, some buckets with each transaction, which takes the old ones away: a search reads all buckets with one statement, and finds
each tag in the old or in the new. Who is killed between two leaves the rest to whoever comes next, since what is still to be done is
there to be seen. All is done with the tenant's row of :class:`~evidence.models.Indexed` locked, so that two processes do nothing
twice.
"""

from __future__ import annotations

from itertools import groupby
from math import inf
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from evidence.models import Indexed, PostingBucket
from evidence.search import buckets
from evidence.search.buckets import RUNS, cut_span, decode_bucket, encode_bucket, part_of
from evidence.search.posting_rows import add_posting_rows
from evidence.search.postings import BLOCK
from kernel.fault_injection import inject_fault

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from uuid import UUID

    from evidence.search.buckets import Places

MOST_RUNS = 8  # of what is not a span yet: a search reads all of them
_AT_ONCE = 256  # buckets of a transaction: some 300 kB
_KEY = ["tenant_id", "level", "part", "first"]


def add_bucket_tags(tenant_id: UUID, places: Places, *, low: int, high: int) -> Places:
    """These tags have these places among the leaves from ``low`` up to ``high``; returns what is to have rows. In a transaction that
    has the tenant's index locked.
    """
    rows, frequent = build_buckets(tenant_id, places, low=low, high=high)
    # A release before buckets that forgot the index left them there.
    PostingBucket.objects.bulk_create(rows, update_conflicts=True, update_fields=["content"], unique_fields=_KEY)
    return frequent


def build_buckets(tenant_id: UUID, places: Places, *, low: int, high: int) -> tuple[list[PostingBucket], Places]:
    """The buckets of these leaves, and what is too frequent for them."""
    rows: list[PostingBucket] = []
    frequent: Places = {}
    for level, begin, end in cut_span(low, high):
        within = {tag: [place for place in of_tag if begin <= place < end] for tag, of_tag in places.items()}
        made, too_many = _build_span(tenant_id, {tag: found for tag, found in within.items() if found}, level, begin)
        rows += made
        for tag, found in too_many.items():
            frequent.setdefault(tag, []).extend(found)
    return rows, frequent


def _build_span(tenant_id: UUID, places: Places, level: int, first: int) -> tuple[list[PostingBucket], Places]:
    parts: dict[int, Places] = {}
    frequent: Places = {}
    for tag, of_tag in places.items():
        if level > RUNS and len(of_tag) > buckets.MOST_PLACES:
            frequent[tag] = of_tag
        else:
            parts.setdefault(part_of(tag, level), {})[tag] = of_tag
    made = [
        PostingBucket(
            tenant_id=tenant_id, level=level, part=part, first=first, content=encode_bucket(tags, first=first)
        )
        for part, tags in sorted(parts.items())
    ]
    return made, frequent


def _unite(rows: Iterable[PostingBucket]) -> Places:
    places: Places = {}
    for row in rows:
        for tag, found in decode_bucket(bytes(row.content), first=row.first).items():
            places.setdefault(tag, []).extend(found)
    return places


def is_merge_due(index: Indexed) -> bool:
    return index.size // buckets.SPANS[RUNS] != index.merged // buckets.SPANS[RUNS]


def merge_buckets(tenant_id: UUID, stop: threading.Event | None = None, *, at_most: float = inf) -> int:
    """What is due of a tenant, in so many transactions; returns how many it took. Who has no more of them goes on another time."""
    index, done = Indexed.objects.get(tenant_id=tenant_id), 0
    if not is_merge_due(index):
        return done
    for level in range(len(buckets.SPANS) - 1):
        span = buckets.SPANS[level + 1]
        due, part = index.size // span * span, 0 if index.size // span != index.merged // span else None
        while part is not None:
            if done >= at_most or (stop is not None and stop.is_set()):
                return done
            part, wrote = _merge_some(tenant_id, level, due, part)
            done += wrote
            inject_fault("merge.committed")
    # Unless the index is made again meanwhile, or another process has merged more.
    Indexed.objects.filter(tenant_id=tenant_id, size__gte=index.size, merged=index.merged).update(merged=index.size)
    return done


@transaction.atomic
def _merge_some(tenant_id: UUID, level: int, due: int, begin: int) -> tuple[int | None, bool]:
    """Buckets of a level that begin before ``due``, from the part ``begin`` on; returns the part to go on with, and whether there
    were any. None at the end, and once the index has forgotten leaves before ``due``: what lies there is no whole span any more."""
    if Indexed.objects.select_for_update().get(tenant_id=tenant_id).size < due:
        return None, False
    level_rows = PostingBucket.objects.filter(tenant_id=tenant_id, level=level)
    waiting = level_rows.filter(part__gte=begin, first__lt=due).order_by("part", "first")
    rows = list(waiting[: _AT_ONCE + 1])
    if not rows:
        return None, False
    span = buckets.SPANS[level + 1]
    pieces = [list(of_span) for _, of_span in groupby(rows, lambda row: (row.part, row.first // span))]
    if len(rows) > _AT_ONCE and len(pieces) > 1:
        pieces.pop()  # more of it may follow
    last = pieces[-1][-1]
    there = _take_what_is_there(
        tenant_id, level + 1, [(piece[0].part, piece[0].first // span * span) for piece in pieces]
    )
    made: list[PostingBucket] = []
    for piece in pieces:
        part, first = piece[0].part, piece[0].first // span * span
        new, frequent = _build_span(tenant_id, _unite([*piece, *there.get((part, first), ())]), level + 1, first)
        made += new
        _add_frequent(tenant_id, frequent)
    up_to = Q(part__lt=last.part) | Q(part=last.part, first__lte=last.first)
    level_rows.filter(up_to, part__gte=begin, first__lt=due).delete()
    PostingBucket.objects.bulk_create(made)
    inject_fault("merge.before_commit")
    return last.part if len(rows) > _AT_ONCE else None, True


def _take_what_is_there(
    tenant_id: UUID, level: int, pieces: list[tuple[int, int]]
) -> dict[tuple[int, int], list[PostingBucket]]:
    """Buckets that are in the place of what is made of these parts of the level before and these spans: none, unless a release
    before buckets forgot the index and left them. What they say is true, since leaves do not change."""
    bits = buckets.BITS[level] - buckets.BITS[level - 1]
    parts = (pieces[0][0] << bits, (pieces[-1][0] + 1 << bits) - 1)
    rows = PostingBucket.objects.filter(
        tenant_id=tenant_id, level=level, part__range=parts, first__in={first for _, first in pieces}
    )
    taken = [row for row in rows if (row.part >> bits, row.first) in pieces]
    found: dict[tuple[int, int], list[PostingBucket]] = {}
    for row in taken:
        found.setdefault((row.part >> bits, row.first), []).append(row)
    if taken:
        PostingBucket.objects.filter(pk__in=[row.pk for row in taken]).delete()
    return found


def _add_frequent(tenant_id: UUID, places: Places) -> None:
    blocks: dict[int, dict[bytes, int]] = {}
    for tag, of_tag in places.items():
        for place in of_tag:
            bits = blocks.setdefault(place // BLOCK, {})
            bits[tag] = bits.get(tag, 0) | 1 << place % BLOCK
    for block, bits in blocks.items():
        add_posting_rows(tenant_id, block, bits, had=True)


def join_runs(tenant_id: UUID) -> None:
    """Once there are many of them."""
    if PostingBucket.objects.filter(tenant_id=tenant_id, level=RUNS).count() > MOST_RUNS:
        _join_runs(tenant_id)


@transaction.atomic
def _join_runs(tenant_id: UUID) -> None:
    """Put the newest together, until the one before them is longer: so each leaf's tags are written again a few times, not with each
    run."""
    size = Indexed.objects.select_for_update().get(tenant_id=tenant_id).size
    rows = list(PostingBucket.objects.filter(tenant_id=tenant_id, level=RUNS).order_by("first"))
    if len(rows) <= MOST_RUNS:
        return
    at = len(rows) - 1
    span = rows[at].first // buckets.SPANS[RUNS]
    while (
        at
        and rows[at - 1].first // buckets.SPANS[RUNS] == span
        and rows[at].first - rows[at - 1].first <= size - rows[at].first
    ):
        at -= 1
    joined = rows[at:]
    PostingBucket.objects.filter(tenant_id=tenant_id, level=RUNS, first__gte=joined[0].first).delete()
    made, _ = _build_span(tenant_id, _unite(joined), RUNS, joined[0].first)
    PostingBucket.objects.bulk_create(made)
