"""Indexer: how facts get into the index.

A loop beside the sealer reads what it has sealed, in the order of the log, one block at a time: the way of a call has no part in it.
How far it is, is one number per tenant, so that it goes on where it stopped, and the index can be made again from nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from evidence.archives.leaves import load_leaves, restore_leaf
from evidence.log.reader import select_leaves
from evidence.models import GLOBAL_LOG, Fact, IndexBlock, Indexed, Log, Posting, read_leaf
from evidence.search import postings
from evidence.search.postings import BLOCK
from evidence.search.tags import SAYS_WHAT_IT_IS, call_tag, call_traits, compute_tags
from kernel.loops import repeat_work

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from uuid import UUID

log = logging.getLogger("toolhub.search")
EVERY_S = 1.0
_AT_ONCE = 500  # parameters of a statement; SQLite takes 999
_UPSERT = (
    "INSERT INTO evidence_posting (tenant_id, tag, block, places) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (tenant_id, tag, block) DO UPDATE SET places = excluded.places"
)


def load_call_traits(invocations: Iterable[UUID | None]) -> dict[UUID, dict[str, str]]:
    """What each of the calls is, for the facts that follow its first ones."""
    ids = list({each for each in invocations if each is not None})
    said: dict[UUID, list[dict[str, Any]]] = {}
    for at in range(0, len(ids), _AT_ONCE):
        rows = Fact.objects.of_calls(*ids[at : at + _AT_ONCE]).filter(kind__in=SAYS_WHAT_IT_IS).order_by("id")
        for id, leaf, tenant_id, index in rows.values_list("invocation_id", "leaf", "tenant_id", "seal__leaf_index"):
            said.setdefault(id, []).append(read_leaf(restore_leaf(leaf, tenant_id, index)))
    return {id: call_traits(leaves) for id, leaves in said.items()}


def tags_of_facts(facts: Iterable[Fact]) -> list[set[bytes]]:
    rows = list(facts)
    load_leaves(rows)
    calls = load_call_traits(fact.invocation_id for fact in rows)
    return [
        compute_tags(
            fact.content,
            bytes(fact.leaf_hash),
            calls.get(fact.invocation_id, {}) if fact.invocation_id else {},
        )
        for fact in rows
    ]


@transaction.atomic
def index_block(tenant_id: UUID, *, size: int) -> int:
    """Take up what was sealed after the first ``size`` leaves, to the end of their block; returns how many are indexed now. When
    another process has taken it up meanwhile, nothing is done."""
    block, first = divmod(size, BLOCK)
    facts = list(select_leaves(tenant_id, size, (block + 1) * BLOCK))
    if not facts or not Indexed.objects.filter(tenant_id=tenant_id, size=size).update(size=size + len(facts)):
        return size
    bits: dict[bytes, int] = {}
    for place, (fact, tags) in enumerate(zip(facts, tags_of_facts(facts), strict=True), first):
        for tag in tags - {call_tag(fact.invocation_id)} if fact.invocation_id else tags:
            bits[tag] = bits.get(tag, 0) | 1 << place
    if first:
        for tag, stored in _stored(tenant_id, block, list(bits)):
            bits[tag] |= postings.decode(stored)
    tenant = Posting._meta.get_field("tenant_id").get_db_prep_value(tenant_id, connection)
    with connection.cursor() as cursor:
        cursor.executemany(
            _UPSERT, [(tenant, tag, block, postings.encode(found)) for tag, found in sorted(bits.items())]
        )
    _note_span(tenant_id, block, [fact.pk for fact in facts])
    return size + len(facts)


def _stored(tenant_id: UUID, block: int, tags: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
    for at in range(0, len(tags), _AT_ONCE):
        rows = Posting.objects.filter(tenant_id=tenant_id, block=block, tag__in=tags[at : at + _AT_ONCE])
        for tag, stored in rows.values_list("tag", "places"):
            yield bytes(tag), bytes(stored)


def _note_span(tenant_id: UUID, number: int, ids: list[UUID]) -> None:
    row, made = IndexBlock.objects.get_or_create(
        tenant_id=tenant_id, number=number, defaults={"first_id": min(ids), "last_id": max(ids)}
    )
    if not made:
        IndexBlock.objects.filter(tenant_id=tenant_id, number=number).update(
            first_id=min(row.first_id, *ids), last_id=max(row.last_id, *ids)
        )


def index_tenant(tenant_id: UUID, stop: threading.Event | None = None) -> int:
    """Take up all that is sealed; returns how many leaves the index has."""
    row, _ = Indexed.objects.get_or_create(tenant_id=tenant_id)
    size = row.size
    while stop is None or not stop.is_set():
        reached = index_block(tenant_id, size=size)
        if reached == size:
            break
        size = reached
    return size


def index_all(stop: threading.Event | None = None) -> None:
    sizes = dict(Indexed.objects.values_list("tenant_id", "size"))
    for tenant_id, size in Log.objects.exclude(tenant_id=GLOBAL_LOG).values_list("tenant_id", "size"):
        if sizes.get(tenant_id, 0) < size:
            index_tenant(tenant_id, stop)


@transaction.atomic
def forget_index(tenant_id: UUID) -> None:
    """Begin again at the first leaf."""
    Posting.objects.filter(tenant_id=tenant_id).delete()
    IndexBlock.objects.filter(tenant_id=tenant_id).delete()
    Indexed.objects.update_or_create(tenant_id=tenant_id, defaults={"size": 0})


def run_indexer(stop: threading.Event) -> None:
    """Follow the logs until told to stop."""
    repeat_work(lambda: index_all(stop), stop, every_s=EVERY_S, what="Facts were not indexed", log=log)
