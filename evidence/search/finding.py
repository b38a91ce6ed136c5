"""Which facts does a query find, page by page?

What is indexed is found by its tags, a run of blocks at a time, in the order of the log; what is not yet (it waits for the sealer or
the indexer) is looked through leaf by leaf, so that a fact is found as soon as it is there. Nothing is counted and nothing skipped:
the cursor of a page is the fact that it ended with. A query without terms, or with times alone, needs no index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Count, Max, Min, Q

from evidence.models import Fact, IndexBlock, Indexed, Pending, Posting, Seal
from evidence.problems import SearchInvalid
from evidence.search import places
from evidence.search.indexing import tags_of_facts
from evidence.search.language import Query, moment_of
from evidence.search.places import ALL, BLOCK
from evidence.search.tags import Asked, Names, asked_by
from toolhub.kernel.ids import decode, encode
from toolhub.kernel.pagination import PAGE_SIZE
from toolhub.kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

MOST_WAITING = (
    500  # facts that are not indexed yet and are looked through; more of them means that the keeper stands still
)
_NEAR = (2, 8)  # blocks that are read at once, nearest first: what is frequent is found there
_FAR = (32, 128, 512)  # the same of those that are left


@dataclass(slots=True)
class Found:
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


def _id_at(moment: datetime) -> UUID:
    ms = int(moment.timestamp() * 1000)
    return UUID(int=min(max(ms, 0), (1 << 48) - 1) << 80)


def _time_of(id: UUID) -> datetime:
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def window_of(query: Query, *, now: datetime, zone: tzinfo) -> Window:
    def bounds(name: str) -> list[UUID]:
        return [_id_at(moment_of(term.value, now=now, zone=zone)) for term in query.of(name)]

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
    names: Names,
    zone: tzinfo = UTC,
    scope: Asked | None = None,
    after: str = "",
    before: str = "",
    size: int = PAGE_SIZE,
) -> Found:
    """A page of what ``query`` finds. ``after`` continues with older facts, ``before`` with newer ones. ``scope`` narrows further."""
    check_own_tenant(query, tenant_id)
    window = window_of(query, now=datetime.now(UTC), zone=zone)
    asked = asked_by(query, names)
    if scope is not None:
        asked = Asked([*asked.wanted, *scope.wanted], [*asked.unwanted, *scope.unwanted])
    return find_asked(asked, tenant_id=tenant_id, window=window, after=after, before=before, size=size)


def find_asked(
    asked: Asked,
    *,
    tenant_id: UUID,
    window: Window = EVER,
    after: str = "",
    before: str = "",
    size: int = PAGE_SIZE,
) -> Found:
    """The same for what is asked for by tags."""
    start = _cursor(after or before) if after or before else None
    if asked.spans or asked.wanted:
        return _Search(tenant_id, asked, window).page(start, newer=not after and bool(before), size=size)
    return _plain(tenant_id, window, start, newer=not after and bool(before), size=size)


def _paged(rows: list[Fact], start: UUID | None, *, newer: bool, size: int) -> Found:
    """``rows``: up to one more than a page, in the direction in which they were looked for."""
    more, rows = len(rows) > size, rows[:size]
    if newer:
        rows.reverse()
    found = Found(rows)
    if rows:
        found.older = rows[-1].wire_id if newer or more else ""
        found.newer = rows[0].wire_id if (newer and more) or (not newer and start is not None) else ""
    return found


def _plain(tenant_id: UUID, window: Window, start: UUID | None, *, newer: bool, size: int) -> Found:
    rows = Fact.objects.filter(window.condition("pk"), tenant_id=tenant_id)
    if start is not None:
        rows = rows.filter(pk__gt=start) if newer else rows.filter(pk__lt=start)
    return _paged(list(rows.order_by("pk" if newer else "-pk")[: size + 1]), start, newer=newer, size=size)


class _Search:
    """One page of a query with terms."""

    def __init__(self, tenant_id: UUID, asked: Asked, window: Window) -> None:
        self.tenant_id, self.asked, self.window = tenant_id, asked, window
        # What is indexed from here on is found below as waiting: first the size, then what waits, so that nothing is missed.
        self.size = Indexed.objects.filter(tenant_id=tenant_id).values_list("size", flat=True).first() or 0
        self.behind = False
        self.partial: set[int] = set()  # blocks that reach over an end of the window

    def page(self, start: UUID | None, *, newer: bool, size: int) -> Found:
        place = self._place(start)
        rows: list[Fact] = []
        if newer:
            assert start is not None
            if place is not None:
                rows = list(islice(self._indexed(place + 1, newer=True), size + 1))
            if len(rows) <= size:
                waiting = self._waiting()[::-1]
                if place is None:
                    waiting = _after(waiting, start)
                rows += waiting[: size + 1 - len(rows)]
        else:
            if place is None:
                waiting = self._waiting()
                rows = (waiting if start is None else _after(waiting, start))[: size + 1]
            if len(rows) <= size:
                top = self.size if place is None else place
                rows += islice(self._indexed(top, newer=False), size + 1 - len(rows))
        found = _paged(rows, start, newer=newer, size=size)
        found.behind = self._reached() if self.behind else None
        return found

    def _place(self, start: UUID | None) -> int | None:
        """Where in the index the page begins; None: among what waits for it."""
        if start is None:
            return None
        seals = Seal.objects.filter(pk=start, tenant_id=self.tenant_id, leaf_index__lt=self.size)
        return seals.values_list("leaf_index", flat=True).first()

    def _reached(self) -> datetime | None:
        last = IndexBlock.objects.filter(tenant_id=self.tenant_id).order_by("-number").first()
        return _time_of(last.last_id) if last else datetime.fromtimestamp(0, UTC)

    # What waits.

    def _waiting(self) -> list[Fact]:
        """What is not indexed and matches, newest first."""
        of_tenant = {"tenant_id": self.tenant_id}
        pending = Pending.objects.filter(**of_tenant).order_by("-pk").values_list("pk", flat=True)
        unsealed = list(pending[: MOST_WAITING + 1])
        seals = Seal.objects.filter(**of_tenant, leaf_index__gte=self.size).order_by("-leaf_index")
        sealed = list(seals.values_list("pk", flat=True)[: MOST_WAITING + 1])
        in_order = list(dict.fromkeys([*(id for id in unsealed if id not in set(sealed)), *sealed]))
        self.behind = len(in_order) > MOST_WAITING
        ids = [id for id in in_order[:MOST_WAITING] if self.window.holds(id)]
        facts = Fact.objects.filter(tenant_id=self.tenant_id).in_bulk(ids)
        rows = [facts[id] for id in ids if id in facts]
        return [fact for fact, tags in zip(rows, tags_of_facts(rows), strict=True) if self.asked.met_by(tags)]

    # What is indexed.

    def _indexed(self, place: int, *, newer: bool) -> Iterator[Fact]:
        """Facts from ``place`` upwards, or below it downwards."""
        places_found = self._places(place, newer=newer)
        while some := list(islice(places_found, PAGE_SIZE + 1)):
            rows = Fact.objects.filter(
                tenant_id=self.tenant_id, seal__tenant_id=self.tenant_id, seal__leaf_index__in=some
            ).select_related("seal")
            yield from sorted(rows, key=lambda fact: fact.seal.leaf_index, reverse=not newer)

    def _places(self, place: int, *, newer: bool) -> Iterator[int]:
        low, high = self._blocks()
        first, last = (place // BLOCK, high) if newer else (low, (place - 1) // BLOCK)
        first, last = max(first, low), min(last, high)
        for run in self._runs(first, last, newer=newer):
            blocks = self._read(run)
            for block in sorted(blocks, reverse=not newer):
                bits = blocks[block]
                if block == place // BLOCK:
                    kept = (1 << place % BLOCK) - 1
                    bits &= ~kept if newer else kept
                bits = self._within(block, bits)
                for at in places.rising(bits) if newer else places.falling(bits):
                    yield block * BLOCK + at

    def _runs(self, first: int, last: int, *, newer: bool) -> Iterator[Sequence[int]]:
        """The blocks to look into, some at a time, nearest first: the near ones, and of the others those that may have a match."""
        blocks: Sequence[int] = range(first, last + 1) if newer else range(last, first - 1, -1)
        for count in _NEAR:
            if blocks:
                yield blocks[:count]
                blocks = blocks[count:]
        if blocks:
            blocks = sorted(self._promising(min(blocks), max(blocks)), reverse=not newer)
        counts = iter(_FAR)
        count = next(counts)
        while blocks:
            yield blocks[:count]
            blocks, count = blocks[count:], next(counts, count)

    def _promising(self, lowest: int, highest: int) -> Sequence[int]:
        """The blocks of this range that have something of all that is wanted, as far as single tags say it."""
        wanted = [[span.low for span in spans] for spans in self.asked.wanted if all(span.is_one for span in spans)]
        if not wanted:
            return range(lowest, highest + 1)
        tags = {tag for either in wanted for tag in either}
        rows = Posting.objects.filter(tenant_id=self.tenant_id, tag__in=tags, block__range=(lowest, highest))
        has = {f"has_{n}": Count("tag", filter=Q(tag__in=either)) for n, either in enumerate(wanted)}
        found = rows.values("block").annotate(**has).filter(**{f"{name}__gt": 0 for name in has})
        return list(found.values_list("block", flat=True))

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

    def _read(self, run: Sequence[int]) -> dict[int, int]:
        """The leaves of each of these blocks that match."""
        whole = max(run) - min(run) + 1 == len(run)
        within = Q(block__range=(min(run), max(run))) if whole else Q(block__in=run)
        single = [span.low for span in self.asked.spans if span.is_one]
        condition = Q(tag__in=single) if single else Q(pk__in=[])
        for span in self.asked.spans:
            if not span.is_one:
                condition |= Q(tag__gte=span.low, tag__lt=span.high)
        rows = Posting.objects.filter(condition, within, tenant_id=self.tenant_id)
        read: dict[int, list[tuple[bytes, int]]] = {}
        for tag, block, stored in rows.values_list("tag", "block", "places"):
            read.setdefault(block, []).append((bytes(tag), places.decode(bytes(stored))))
        if not self.asked.wanted:
            read = {block: read.get(block, []) for block in run}
        return {block: bits for block, tags in read.items() if (bits := self._bits(tags, block))}

    def _bits(self, tags: list[tuple[bytes, int]], block: int) -> int:
        bits = ALL if (block + 1) * BLOCK <= self.size else (1 << self.size % BLOCK) - 1
        for spans in self.asked.wanted:
            either = 0
            for tag, found in tags:
                if any(span.holds(tag) for span in spans):
                    either |= found
            bits &= either
        for tag, found in tags:
            if any(span.holds(tag) for span in self.asked.unwanted):
                bits &= ~found
        return bits

    def _within(self, block: int, bits: int) -> int:
        """Of a block that reaches over an end of the window: the leaves that are within it."""
        if block not in self.partial:
            return bits
        begin = block * BLOCK
        seals = Seal.objects.filter(
            self.window.condition("fact_id"),
            tenant_id=self.tenant_id,
            leaf_index__in=[begin + place for place in places.rising(bits)],
        )
        return sum(1 << index - begin for index in seals.values_list("leaf_index", flat=True))


def _after(rows: list[Fact], start: UUID) -> list[Fact]:
    """What follows the fact that a page ended with. It matched, so it is among the rows while it waits."""
    ids = [row.pk for row in rows]
    return rows[ids.index(start) + 1 :] if start in ids else rows
