"""Indexer: how facts get into the index.

A loop beside the sealer reads what it has sealed, in the order of the log, one block at a time: the way of a call has no part in it.
How far it is, is one number per tenant, so that it goes on where it stopped, and the index can be made again from nothing.

What is in the archive alone, which may be away, holds nobody up: the columns of a fact are indexed then, and that it lacks the rest is
noted in the index itself (:data:`~evidence.search.tags.UNREAD_TAG`). It is taken up again, each minute until it can be read.
"""

from __future__ import annotations

import logging
import random
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, transaction

from evidence.archives.leaves import load_leaves
from evidence.log.reader import select_leaves
from evidence.models import GLOBAL_LOG, Fact, IndexBlock, Indexed, Log, Posting, PostingBucket
from evidence.problems import ArchivedFactUnavailable, SearchIndexDamaged
from evidence.search import postings
from evidence.search.bucket_merges import add_bucket_tags, is_merge_due, join_runs, merge_buckets
from evidence.search.buckets import is_bucketed
from evidence.search.posting_rows import add_posting_rows, read_block_rows
from evidence.search.postings import BLOCK
from evidence.search.tags import SAYS_WHAT_IT_IS, UNREAD_TAG, call_tag, call_traits, compute_tags
from kernel.ids import encode
from kernel.loops import Rest, repeat_work

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

log = logging.getLogger("toolhub.search")
EVERY_S = 1.0
UNREAD_EVERY_S = 60.0
_UNREAD_AT_ONCE = 16  # blocks
_AT_ONCE = 500  # parameters of a statement; SQLite takes 999
# Of a turn of the keeper.
BLOCKS_AT_ONCE = 8  # of a tenant
MERGES_AT_ONCE = 24  # of all tenants: two or three seconds


def _read_columns(fact: Fact) -> dict[str, Any]:
    """What a fact says without its leaf."""
    return {
        "kind": fact.kind,
        "subject": fact.subject,
        "invocation": encode("inv", fact.invocation_id) if fact.invocation_id else "",
        "actor": {"id": fact.actor_id},
        "tool": fact.tool,
        "outcome": fact.outcome,
        "reason": fact.reason,
        "trace": fact.trace_id,
    }


class _LeafReader:
    """What facts say, from the archive where the database has it no more. ``unread``: facts and calls of which it cannot be had, and
    why.
    """

    def __init__(self) -> None:
        self.unread = dict[UUID, ArchivedFactUnavailable]()

    def read(self, facts: Sequence[Fact]) -> list[dict[str, Any]]:
        try:
            load_leaves(facts)
        except ArchivedFactUnavailable:
            for fact in facts:
                try:
                    load_leaves([fact])
                except ArchivedFactUnavailable as problem:
                    self.unread[fact.pk] = problem
        return [_read_columns(fact) if fact.pk in self.unread else fact.content for fact in facts]


def load_call_traits(invocations: Iterable[UUID | None], reader: _LeafReader) -> dict[UUID, dict[str, str]]:
    """What each of the calls is, for the facts that follow its first ones."""
    ids = list({each for each in invocations if each is not None})
    said: dict[UUID, list[dict[str, Any]]] = {}
    for at in range(0, len(ids), _AT_ONCE):
        rows = list(Fact.objects.of_calls(*ids[at : at + _AT_ONCE]).filter(kind__in=SAYS_WHAT_IT_IS).order_by("id"))
        for fact, content in zip(rows, reader.read(rows), strict=True):
            if fact.invocation_id:
                said.setdefault(fact.invocation_id, []).append(content)
                if fact.pk in reader.unread:
                    reader.unread[fact.invocation_id] = reader.unread[fact.pk]
    return {id: call_traits(leaves) for id, leaves in said.items()}


@dataclass(slots=True)
class ReadTags:
    """The tags of facts, in their order. ``unread``: the facts of which some may lack, since the archive does not give what it has,
    and why not.
    """

    tags: list[set[bytes]]
    unread: dict[UUID, ArchivedFactUnavailable]


def read_tags(facts: Iterable[Fact]) -> ReadTags:
    """As far as they can be had now: of what cannot be read there are its columns."""
    rows, reader = list(facts), _LeafReader()
    contents = reader.read(rows)
    calls = load_call_traits((fact.invocation_id for fact in rows), reader)
    tags = [
        compute_tags(content, bytes(fact.leaf_hash), calls.get(fact.invocation_id, {}) if fact.invocation_id else {})
        for fact, content in zip(rows, contents, strict=True)
    ]
    unread = {
        fact.pk: reader.unread[id] for fact in rows for id in (fact.invocation_id, fact.pk) if id in reader.unread
    }
    return ReadTags(tags, unread)


def tags_of_facts(facts: Iterable[Fact]) -> list[set[bytes]]:
    """All of them. Raises :class:`~evidence.problems.ArchivedFactUnavailable`."""
    read = read_tags(facts)
    for problem in read.unread.values():
        raise problem
    return read.tags


def index_block(tenant_id: UUID, *, size: int) -> int:
    """Take up what was sealed after the first ``size`` leaves, to the end of their block; returns how many are indexed now. When
    another process has taken it up meanwhile, nothing is done."""
    block, first = divmod(size, BLOCK)
    facts = list(select_leaves(tenant_id, size, (block + 1) * BLOCK))
    if not facts or not Indexed.objects.filter(tenant_id=tenant_id, size=size).exists():
        return size
    read = read_tags(facts)  # nobody waits while the archive is asked
    bits: dict[bytes, int] = {}
    for place, (fact, tags) in enumerate(zip(facts, read.tags, strict=True), first):
        _set_bits(bits, fact, tags, place)
        if fact.pk in read.unread:
            bits[UNREAD_TAG] = bits.get(UNREAD_TAG, 0) | 1 << place
    with transaction.atomic():
        if not Indexed.objects.filter(tenant_id=tenant_id, size=size).update(size=size + len(facts)):
            return size
        low, high = size, size + len(facts)
        few = {tag: _places_of(bits.pop(tag), block) for tag in [*bits] if is_bucketed(tag)}
        for tag, places in add_bucket_tags(tenant_id, few, low=low, high=high).items():
            bits[tag] = sum(1 << place % BLOCK for place in places)
        add_posting_rows(tenant_id, block, bits, had=bool(first))
        _note_span(tenant_id, block, [fact.pk for fact in facts])
    return size + len(facts)


def _places_of(bits: int, block: int) -> list[int]:
    return [block * BLOCK + place for place in postings.iter_rising(bits)]


def _set_bits(bits: dict[bytes, int], fact: Fact, tags: set[bytes], place: int) -> None:
    for tag in tags - {call_tag(fact.invocation_id)} if fact.invocation_id else tags:
        bits[tag] = bits.get(tag, 0) | 1 << place


def _note_span(tenant_id: UUID, number: int, ids: list[UUID]) -> None:
    row, made = IndexBlock.objects.get_or_create(
        tenant_id=tenant_id, number=number, defaults={"first_id": min(ids), "last_id": max(ids)}
    )
    if not made:
        IndexBlock.objects.filter(tenant_id=tenant_id, number=number).update(
            first_id=min(row.first_id, *ids), last_id=max(row.last_id, *ids)
        )


def take_up_leaves(tenant_id: UUID, stop: threading.Event | None = None) -> bool:
    """What is sealed, some blocks of it; returns whether more may follow."""
    row, _ = Indexed.objects.get_or_create(tenant_id=tenant_id)
    size = row.size
    for _ in range(BLOCKS_AT_ONCE):
        reached = size if stop is not None and stop.is_set() else index_block(tenant_id, size=size)
        if reached == size:
            return False
        size = reached
    return True


def index_tenant(tenant_id: UUID, stop: threading.Event | None = None) -> int:
    """Take up all that is sealed, and put its buckets together as they come; returns how many leaves the index has."""
    more = True
    while more:
        more = take_up_leaves(tenant_id, stop)
        merge_buckets(tenant_id, stop)
        join_runs(tenant_id)
    return Indexed.objects.get(tenant_id=tenant_id).size


class IndexRound:
    """What a keeper does again and again: take up what is sealed of each tenant, then put buckets together, and of both so much at
    a time that no tenant waits long for its turn. One that fails keeps no other waiting."""

    def __init__(self) -> None:
        # Tenants with a bucket that cannot be read, and how far theirs were merged: they are left alone until their index is made
        # again, which merges from the beginning.
        self.damaged = dict[UUID, int]()

    def run(self, stop: threading.Event | None = None) -> bool:
        """Returns whether there is more to do at once."""
        rows = {row.tenant_id: row for row in Indexed.objects.all()}
        sizes = dict(Log.objects.exclude(tenant_id=GLOBAL_LOG).values_list("tenant_id", "size"))
        behind = [id for id, size in sizes.items() if id not in rows or rows[id].size < size]
        more = False
        for tenant_id in behind:
            with _keep_from_others(tenant_id, "Facts of %s were not indexed"):
                more |= take_up_leaves(tenant_id, stop)
            with (
                _keep_from_others(tenant_id, "Runs of the search index of %s were not joined"),
                self._note_damage(tenant_id),
            ):
                join_runs(tenant_id)
        return self._merge(Indexed.objects.all() if behind else rows.values(), stop) or more

    def _merge(self, rows: Iterable[Indexed], stop: threading.Event | None) -> bool:
        due = [row for row in rows if is_merge_due(row) and self.damaged.get(row.pk) != row.merged]
        left = MERGES_AT_ONCE
        for row in random.sample(due, len(due)):  # not always the same first
            if not left:
                return True
            with (
                _keep_from_others(row.pk, "Buckets of the search index of %s were not put together"),
                self._note_damage(row.pk),
            ):
                left -= merge_buckets(row.pk, stop, at_most=left)
        return not left

    @contextmanager
    def _note_damage(self, tenant_id: UUID) -> Iterator[None]:
        """Said once, with what to do."""
        try:
            yield
        except SearchIndexDamaged as problem:
            merged = Indexed.objects.get(tenant_id=tenant_id).merged
            if self.damaged.get(tenant_id) != merged:
                self.damaged[tenant_id] = merged
                log.error("The search index of %s: %s %s", encode("ten", tenant_id), problem.cause, problem.cure)  # noqa: TRY400


@contextmanager
def _keep_from_others(tenant_id: UUID, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # That the database is away concerns all of them; an error of a row is the tenant's own.
        if isinstance(error, (DatabaseError, InterfaceError)) and not isinstance(error, (DataError, IntegrityError)):
            raise
        log.exception(f"{what}: this is tried again.", encode("ten", tenant_id))


def index_all(stop: threading.Event | None = None) -> None:
    """Of each tenant all that is sealed."""
    index_round = IndexRound()
    while index_round.run(stop):
        pass


def index_unread(stop: threading.Event | None = None) -> None:
    """Take up again what was indexed without what the archive has of it."""
    tenants = Indexed.objects.values("tenant_id")
    rows = Posting.objects.filter(tenant_id__in=tenants, tag=UNREAD_TAG).values_list("tenant_id", "block")
    blocks = list(rows)
    # Not always the same: of some it may never be had.
    for tenant_id, block in random.sample(blocks, min(len(blocks), _UNREAD_AT_ONCE)):
        if stop is None or not stop.is_set():
            index_block_again(tenant_id, block)


def index_block_again(tenant_id: UUID, block: int) -> None:
    """Add to a block what can be read of it by now."""
    begin, noted = block * BLOCK, _read_unread(tenant_id, block)
    places = list(enumerate(select_leaves(tenant_id, begin, begin + noted.bit_length())))
    facts = [(place, fact) for place, fact in places if noted >> place & 1]
    read = read_tags(fact for _, fact in facts)
    bits: dict[bytes, int] = {}
    done = 0
    for (place, fact), tags in zip(facts, read.tags, strict=True):
        if fact.pk not in read.unread:
            _set_bits(bits, fact, tags, place)
            done |= 1 << place
    if not done:
        return
    with transaction.atomic():
        Indexed.objects.select_for_update().get(tenant_id=tenant_id)  # who takes up new leaves writes the same rows
        noted = _read_unread(tenant_id, block)
        if noted & done != done:
            return  # another process was there, or the index is made again
        add_posting_rows(tenant_id, block, bits, had=True)
        row = Posting.objects.filter(tenant_id=tenant_id, tag=UNREAD_TAG, block=block)
        if noted == done:
            row.delete()
        else:
            row.update(places=postings.encode(noted & ~done))


def _read_unread(tenant_id: UUID, block: int) -> int:
    return sum(bits for _, bits in read_block_rows(tenant_id, block, [UNREAD_TAG]))


@transaction.atomic
def forget_index(tenant_id: UUID) -> None:
    """Begin again at the first leaf."""
    Indexed.objects.update_or_create(tenant_id=tenant_id, defaults={"size": 0, "merged": 0})
    for index in (Posting, PostingBucket, IndexBlock):
        index.objects.filter(tenant_id=tenant_id).delete()


def run_indexer(stop: threading.Event) -> None:
    """Follow the logs until told to stop."""
    due, index_round = 0.0, IndexRound()

    def work() -> Rest | None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + UNREAD_EVERY_S
            index_unread(stop)
        return Rest(0) if index_round.run(stop) else None

    repeat_work(work, stop, every_s=EVERY_S, what="Facts were not indexed", log=log)
