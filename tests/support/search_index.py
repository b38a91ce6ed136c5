"""Search index: which leaves does it say have which tags, and which do?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.log.reader import select_leaves
from evidence.models import Indexed, Posting, PostingBucket
from evidence.search import bucket_merges, buckets, engine, indexer, postings
from evidence.search.buckets import decode_bucket
from evidence.search.indexer import tags_of_facts
from evidence.search.tags import call_tag

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    Index = dict[bytes, list[int]]


BLOCK = 16


def shorten_spans(set_value: Callable[[object, str, object], None]) -> None:
    """So that few facts fill many blocks, and spans of each level."""
    for module in (engine, indexer, bucket_merges):
        set_value(module, "BLOCK", BLOCK)
    set_value(engine, "ALL", (1 << BLOCK) - 1)
    set_value(buckets, "SPANS", (4, 4, 8, 16, 32, 64))
    set_value(buckets, "MOST_PLACES", 6)
    set_value(bucket_merges, "MOST_RUNS", 2)
    set_value(bucket_merges, "_AT_ONCE", 3)


def read_block_size() -> int:
    return int(vars(indexer)["BLOCK"])


def read_index(tenant_id: UUID) -> Index:
    """Wherever it is written: each leaf as often as it is there."""
    found: Index = {}
    for tag, block, places in Posting.objects.filter(tenant_id=tenant_id).values_list("tag", "block", "places"):
        bits = postings.decode(bytes(places))
        found.setdefault(bytes(tag), []).extend(block * read_block_size() + at for at in postings.iter_rising(bits))
    for row in PostingBucket.objects.filter(tenant_id=tenant_id):
        for tag, of_tag in decode_bucket(bytes(row.content), first=row.first).items():
            found.setdefault(tag, []).extend(of_tag)
    return {tag: sorted(of_tag) for tag, of_tag in found.items()}


def compute_index(tenant_id: UUID) -> Index:
    """By the leaves that are indexed."""
    found: Index = {}
    facts = list(select_leaves(tenant_id, 0, Indexed.objects.get(tenant_id=tenant_id).size))
    for place, (fact, tags) in enumerate(zip(facts, tags_of_facts(facts), strict=True)):
        for tag in tags - ({call_tag(fact.invocation_id)} if fact.invocation_id else set()):
            found.setdefault(tag, []).append(place)
    return found
