"""Search engine: the facts that a query finds, page by page.

What is indexed is found by its tags, a run of blocks at a time, in the order of the log; what is not yet (it waits for the sealer or
the indexer) is looked through leaf by leaf, so that a fact is found as soon as it is there. Nothing is counted and nothing skipped:
the cursor of a page is the fact that it ended with. A query without terms, or with times alone, needs no index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection
from django.db.models import Max, Min, Q

from evidence.models import Fact, IndexBlock, Seal
from evidence.problems import SearchInvalid
from evidence.search import postings
from evidence.search.bucket_rows import find_bucket_postings
from evidence.search.call_postings import find_call_postings
from evidence.search.facts_at import read_facts_at
from evidence.search.indexer import read_tags
from evidence.search.language import Query, parse_moment
from evidence.search.posting_rows import read_posting_rows
from evidence.search.postings import ALL, BLOCK
from evidence.search.tags import (
    NameLookups,
    TagQuery,
    TagSpan,
    build_tag_query,
    call_tag,
    list_calls,
    without_unwanted_kinds,
)
from kernel.http.pagination import PAGE_SIZE
from kernel.ids import decode, encode, lowest_id
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import tzinfo

    _Tags = dict[int, list[tuple[bytes, bytes]]]  # of blocks: tags, and which leaves have them, as it is stored

LIMIT_MS = 2_000  # for a page of facts, with what is looked up for it
MOST_WAITING = (
    500  # facts that are not indexed yet and are looked through; more of them means that the keeper stands still
)
# Blocks that are read at once, nearest first.
_NEAR = 8  # at first: what is frequent is found there
_NEAR_OF_MANY = 2  # where a term asks for all tags with a beginning
_FARTHER = 128  # times as many as were read, when nothing was found in them
_MOST = 2048


@dataclass(slots=True)
class FactPage:
    """Newest first. ``older`` and ``newer``: cursors, empty where nothing follows. ``behind``: until when the index goes, when so much
    waits for it that not everything was looked through."""

    rows: list[Fact] = field(default_factory=list)
    older: str = ""
    newer: str = ""
    behind: datetime | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Ids from ``low`` up to, and without, ``high``: a UUIDv7 begins with its time, so a time is an id."""

    low: UUID | None = None
    high: UUID | None = None

    def holds(self, id: UUID) -> bool:
        return (self.low is None or id >= self.low) and (self.high is None or id < self.high)

    def condition(self, name: str) -> Q:
        asked = Q()
        if self.low is not None:
            asked &= Q(**{f"{name}__gte": self.low})
        if self.high is not None:
            asked &= Q(**{f"{name}__lt": self.high})
        return asked


EVER = Window()


def _time_of(id: UUID) -> datetime:
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def build_window(query: Query, *, now: datetime, zone: tzinfo) -> Window:
    def bounds(name: str) -> list[UUID]:
        return [lowest_id(parse_moment(term.value, now=now, zone=zone)) for term in query.of(name)]

    return Window(max(bounds("after"), default=None), min(bounds("before"), default=None))


def check_own_tenant(query: Query, tenant_id: UUID) -> None:
    """One searches in the tenant that one acts in. That there is another is never said."""
    own = encode("ten", tenant_id)
    for term in query.of("tenant"):
        if term.value != own:
            text = str(term)
            at = {"at": str(query).index(text), "length": len(text)}
            message = "A search finds facts of the tenant that you act in, and no others."
            raise SearchInvalid.at(str(query), [at | {"message": message, "instead": f"tenant:{own}"}])


def _cursor(text: str) -> UUID:
    try:
        return decode("fct", text)
    except ValueError as error:
        raise SchemaInvalid(
            "The page cursor is not one that this list gave out.",
            details={"findings": [{"pointer": "/after", "message": str(error)}]},
        ) from error


def find_facts(
    query: Query,
    *,
    tenant_id: UUID,
    names: NameLookups,
    zone: tzinfo = UTC,
    scope: TagQuery | None = None,
    after: str = "",
    before: str = "",
    size: int = PAGE_SIZE,
) -> FactPage:
    """A page of what ``query`` finds. ``after`` continues with older facts, ``before`` with newer ones. ``scope`` narrows further."""
    check_own_tenant(query, tenant_id)
    window = build_window(query, now=datetime.now(UTC), zone=zone)
    asked = build_tag_query(query, names)
    if scope is not None:
        asked = TagQuery([*asked.wanted, *scope.wanted], [*asked.unwanted, *scope.unwanted])
    return find_by_tags(asked, tenant_id=tenant_id, window=window, after=after, before=before, size=size)


def find_by_tags(
    asked: TagQuery,
    *,
    tenant_id: UUID,
    window: Window = EVER,
    after: str = "",
    before: str = "",
    size: int = PAGE_SIZE,
) -> FactPage:
    """The same for what is asked for by tags."""
    start = _cursor(after or before) if after or before else None
    if asked.spans or asked.wanted:
        return _Search(tenant_id, asked, window, page_size=size).page(start, newer=not after and bool(before))
    return _plain(tenant_id, window, start, newer=not after and bool(before), size=size)


def _paged(rows: list[Fact], start: UUID | None, *, newer: bool, size: int) -> FactPage:
    """``rows``: up to one more than a page, in the direction in which they were looked for."""
    more, rows = len(rows) > size, rows[:size]
    if newer:
        rows.reverse()
    found = FactPage(rows)
    if rows:
        found.older = rows[-1].wire_id if newer or more else ""
        found.newer = rows[0].wire_id if (newer and more) or (not newer and start is not None) else ""
    return found


def _plain(tenant_id: UUID, window: Window, start: UUID | None, *, newer: bool, size: int) -> FactPage:
    rows = Fact.objects.filter(window.condition("pk"), tenant_id=tenant_id)
    if start is not None:
        rows = rows.filter(pk__gt=start) if newer else rows.filter(pk__lt=start)
    return _paged(list(rows.order_by("pk" if newer else "-pk")[: size + 1]), start, newer=newer, size=size)


# How far the index is, at which leaf a page begins and what waits: all as of one moment, so that nothing is missed or found twice.
_STATE = """
    WITH indexed AS (SELECT COALESCE(MAX(size), 0) AS size FROM evidence_indexed WHERE tenant_id = %(tenant)s)
    SELECT 'size' AS what, NULL AS id, size AS place FROM indexed
    UNION ALL
    SELECT 'start', fact_id, leaf_index FROM evidence_seal WHERE fact_id = %(start)s AND tenant_id = %(tenant)s
    UNION ALL
    SELECT * FROM (
        SELECT 'sealed', fact_id, leaf_index FROM evidence_seal
        WHERE tenant_id = %(tenant)s AND leaf_index >= (SELECT size FROM indexed) ORDER BY leaf_index DESC LIMIT %(most)s
    ) AS sealed
    UNION ALL
    SELECT * FROM (
        SELECT 'pending', fact_id, 0 FROM evidence_pending WHERE tenant_id = %(tenant)s ORDER BY fact_id DESC LIMIT %(most)s
    ) AS pending
"""


class _Search:
    """One page of a query with terms."""

    def __init__(self, tenant_id: UUID, asked: TagQuery, window: Window, *, page_size: int) -> None:
        self.tenant_id, self.asked, self.window = tenant_id, asked, window
        self.enough = page_size + 1  # with one that says that more follow
        self.size = 0
        self.waits: list[UUID] = []  # what is not indexed, newest first
        self.behind = False
        self.partial: set[int] = set()  # blocks that reach over an end of the window
        self.met: dict[bytes, list[int]] = {}  # of tags that were read: see _meets

    def page(self, start: UUID | None, *, newer: bool) -> FactPage:
        place = self._look(start)
        rows: list[Fact] = []
        if newer:
            assert start is not None
            if place is not None:
                rows = list(islice(self._indexed(place + 1, newer=True), self.enough))
            if len(rows) < self.enough:
                waiting = self._waiting()[::-1]
                if place is None:
                    waiting = _after(waiting, start)
                rows += waiting[: self.enough - len(rows)]
        else:
            if place is None:
                waiting = self._waiting()
                rows = (waiting if start is None else _after(waiting, start))[: self.enough]
            if len(rows) < self.enough:
                top = self.size if place is None else place
                rows += islice(self._indexed(top, newer=False), self.enough - len(rows))
        found = _paged(rows, start, newer=newer, size=self.enough - 1)
        found.behind = self._reached() if self.behind else None
        return found

    def _look(self, start: UUID | None) -> int | None:
        """Where in the index the page begins; None: among what waits for it."""
        written = Fact._meta.pk.get_db_prep_value
        # PostgreSQL plans the reading of a whole table for ``fact_id = NULL``; no fact has the other id.
        tenant, begin = written(self.tenant_id, connection), written(start or UUID(int=0), connection)
        said: dict[str, list[tuple[Any, Any]]] = {}
        with connection.cursor() as cursor:
            cursor.execute(_STATE, {"tenant": tenant, "start": begin, "most": MOST_WAITING + 1})
            for what, id, place in cursor.fetchall():
                said.setdefault(what, []).append((place, id and UUID(str(id))))
        [(self.size, _)] = said["size"]
        sealed = [id for _, id in sorted(said.get("sealed", []), reverse=True)]
        pending = sorted((id for _, id in said.get("pending", [])), reverse=True)
        self.waits = list(dict.fromkeys([*pending, *sealed]))
        return next((place for place, _ in said.get("start", []) if place < self.size), None)

    def _reached(self) -> datetime | None:
        last = IndexBlock.objects.filter(tenant_id=self.tenant_id).order_by("-number").first()
        return _time_of(last.last_id) if last else datetime.fromtimestamp(0, UTC)

    # What waits.

    def _waiting(self) -> list[Fact]:
        """What is not indexed and matches, newest first."""
        self.behind = len(self.waits) > MOST_WAITING
        ids = [id for id in self.waits[:MOST_WAITING] if self.window.holds(id)]
        facts = Fact.objects.filter(tenant_id=self.tenant_id).in_bulk(ids)
        rows = [facts[id] for id in ids if id in facts]
        return [fact for fact, tags in zip(rows, read_tags(rows).tags, strict=True) if self.asked.met_by(tags)]

    # What is indexed.

    def _indexed(self, place: int, *, newer: bool) -> Iterator[Fact]:
        """Facts from ``place`` upwards, or below it downwards."""
        places_found = self._places(place, newer=newer)
        while some := list(islice(places_found, self.enough)):
            yield from read_facts_at(self.tenant_id, some, newer=newer)

    def _places(self, place: int, *, newer: bool) -> Iterator[int]:
        low, high = self._blocks()
        first, last = (place // BLOCK, high) if newer else (low, (place - 1) // BLOCK)
        first, last = max(first, low), min(last, high)
        blocks: Sequence[int] = range(first, last + 1) if newer else range(last, first - 1, -1)
        found = seen = 0
        count = _NEAR if all(span.is_one for span in self.asked.spans) else _NEAR_OF_MANY
        read: Callable[[Sequence[int]], _Tags] | None = None
        while blocks:
            run, blocks = blocks[:count], blocks[count:]
            tags = read(run) if read else self._read(run)
            for block in sorted(tags, reverse=not newer):
                bits = self._bits(tags[block], block)
                if block == place // BLOCK:
                    kept = (1 << place % BLOCK) - 1
                    bits &= ~kept if newer else kept
                bits = self._within(block, bits)
                found += bits.bit_count()
                for at in postings.iter_rising(bits) if newer else postings.iter_falling(bits):
                    yield block * BLOCK + at
            # As many as should have the rest of the page, when matches are as frequent there as they are here.
            read = read or self._far(tags, len(run))
            seen += len(run)
            farther = 2 * seen * (self.enough - found) // found if found else seen * _FARTHER
            count = min(max(seen, farther), _MOST)

    def _far(self, near: _Tags, count: int) -> Callable[[Sequence[int]], _Tags]:
        """How the other blocks are read best, after ``count`` near ones: where one of what is wanted is in few of them, only those
        blocks that have it."""
        if not self.asked.wanted:
            self.asked, self.met = without_unwanted_kinds(self.asked), {}
        if not self.asked.wanted:
            return self._read
        in_blocks = [
            sum(any(n in self._meets(tag) for tag, _ in tags) for tags in near.values())
            for n in range(len(self.asked.wanted))
        ]
        lead = in_blocks.index(min(in_blocks))
        if in_blocks[lead] * 2 >= count:
            return self._read
        first = self.asked.wanted[lead]
        others = [
            *self.asked.unwanted,
            *(span for n, spans in enumerate(self.asked.wanted) if n != lead for span in spans),
        ]

        def read(run: Sequence[int]) -> _Tags:
            found = self._postings(first, run)
            for block, tags in self._postings(others, sorted(found)).items():
                if block in found:
                    found[block] += tags
            return found

        return read

    def _blocks(self) -> tuple[int, int]:
        """The first and the last block that may have what is asked for."""
        if self.window == EVER:
            return 0, (self.size - 1) // BLOCK
        rows = IndexBlock.objects.filter(tenant_id=self.tenant_id)
        if self.window.low is not None:
            rows = rows.filter(last_id__gte=self.window.low)
        if self.window.high is not None:
            rows = rows.filter(first_id__lt=self.window.high)
        ends = rows.aggregate(low=Min("number"), high=Max("number"))
        within = self.window.condition("first_id") & self.window.condition("last_id")
        self.partial = set(rows.exclude(within).values_list("number", flat=True))
        return (0, -1) if ends["low"] is None else (ends["low"], ends["high"])

    def _read(self, run: Sequence[int]) -> _Tags:
        """All that is asked for, of these blocks."""
        read = self._postings(self.asked.spans, run)
        return read if self.asked.wanted else {block: read.get(block, []) for block in run}

    def _postings(self, spans: Sequence[TagSpan], run: Sequence[int]) -> _Tags:
        if not spans or not run:
            return {}
        read: _Tags = {}
        in_buckets = self._bucket_postings  # before the rows: what gets too frequent for buckets goes there
        for tag, block, stored in read_posting_rows(self.tenant_id, spans, run):
            read.setdefault(block, []).append((tag, stored))
        elsewhere = [(tag, found) for tag, found in in_buckets.items() if any(span.holds(tag) for span in spans)]
        # Beside what buckets have of the same id: facts of other calls, or of none, name the call too.
        elsewhere += [(call_tag(call), self._call_postings[call]) for call in list_calls(spans)]
        for tag, found in elsewhere:
            for block, stored in found.items():
                if block in run:
                    read.setdefault(block, []).append((tag, stored))
        return read

    @cached_property
    def _bucket_postings(self) -> dict[bytes, dict[int, bytes]]:
        return find_bucket_postings(self.tenant_id, self.asked.spans, block_size=BLOCK)

    @cached_property
    def _call_postings(self) -> dict[UUID, dict[int, bytes]]:
        return find_call_postings(self.tenant_id, list_calls(self.asked.spans), size=self.size, block_size=BLOCK)

    def _meets(self, tag: bytes) -> list[int]:
        """Which of what is wanted the tag meets, by its number; what is unwanted has the number after the last."""
        numbers = self.met.get(tag)
        if numbers is None:
            asked = [*self.asked.wanted, self.asked.unwanted]
            numbers = [n for n, spans in enumerate(asked) if any(span.holds(tag) for span in spans)]
            self.met[tag] = numbers
        return numbers

    def _bits(self, tags: list[tuple[bytes, bytes]], block: int) -> int:
        """The leaves of the block that match. What is rarest is looked at first: as a rule nothing is left soon."""
        met: list[list[bytes]] = [[] for _ in range(len(self.asked.wanted) + 1)]
        for tag, stored in tags:
            for number in self._meets(tag):
                met[number].append(stored)
        unwanted = met.pop()
        if not all(met):
            return 0
        bits = ALL if (block + 1) * BLOCK <= self.size else (1 << self.size % BLOCK) - 1
        for each in met:
            bits = bits and bits & postings.union_postings(each)
        return bits and bits & ~postings.union_postings(unwanted)

    def _within(self, block: int, bits: int) -> int:
        """Of a block that reaches over an end of the window: the leaves that are within it."""
        if not bits or block not in self.partial:
            return bits
        begin = block * BLOCK
        seals = Seal.objects.filter(
            self.window.condition("fact_id"),
            tenant_id=self.tenant_id,
            leaf_index__in=[begin + place for place in postings.iter_rising(bits)],
        )
        return sum(1 << index - begin for index in seals.values_list("leaf_index", flat=True))


def _after(rows: list[Fact], start: UUID) -> list[Fact]:
    """What follows the fact that a page ended with. It matched, so it is among the rows while it waits."""
    ids = [row.pk for row in rows]
    return rows[ids.index(start) + 1 :] if start in ids else rows
