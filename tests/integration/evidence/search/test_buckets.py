"""Buckets of the search index: does each tag stay found while they are put together, whoever does so, and however it ends?"""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connections

from evidence.log.reader import select_leaves
from evidence.models import Fact, IndexBlock, Indexed, Posting, PostingBucket, Seal
from evidence.problems import SearchIndexDamaged
from evidence.search import bucket_merges, engine, indexer
from evidence.search.bucket_merges import is_merge_due, merge_buckets
from evidence.search.bucket_rows import find_bucket_postings
from evidence.search.buckets import RUNS
from evidence.search.engine import find_facts
from evidence.search.indexer import index_tenant
from evidence.search.language import parse
from evidence.search.name_resolution import names_in
from evidence.search.tags import exact_span, make_tag
from kernel.ids import encode, new_id
from tests.integration.evidence.search.test_fact_search import seal, write_call
from tests.support.search_index import compute_index, read_index, shorten_spans

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import Tenant
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_spans(monkeypatch.setattr)


def write_log(tenant: Tenant, caller: Caller, calls: int, *, chain: str = "", each: int = 0) -> None:
    """Of so many calls, of which the index takes up ``each`` at a time."""
    chosen = random.Random(calls)
    for number in range(calls):
        write_call(caller.by, chosen, chain=chain if number % 3 == 0 else "")
        if each and number % each == 0:
            seal(tenant)
            index_tenant(tenant.pk)
    seal(tenant)


def leave_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they were indexed."""
    monkeypatch.setattr(indexer, "merge_buckets", lambda *_, **__: 0)
    monkeypatch.setattr(indexer, "join_runs", lambda _: None)


def find(tenant: Tenant, query: str) -> set[UUID]:
    found = find_facts(parse(query), tenant_id=tenant.pk, names=names_in(tenant.pk), size=200)
    assert not found.older
    return {fact.pk for fact in found.rows}


def hash_of(fact: Fact) -> str:
    return f"hash:{bytes(fact.leaf_hash).hex()}"


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("each", [1, 3, 7, 0])
def test_the_index_says_what_the_leaves_say_however_it_was_taken_up(tenant: Tenant, caller: Caller, each: int) -> None:
    chain = encode("chn", new_id())
    write_log(tenant, caller, 45, chain=chain, each=each)
    index_tenant(tenant.pk)

    assert read_index(tenant.pk) == compute_index(tenant.pk)
    levels = set(PostingBucket.objects.values_list("level", flat=True))
    assert max(levels) == 5
    assert PostingBucket.objects.filter(level=RUNS).count() <= bucket_merges.MOST_RUNS
    assert Posting.objects.filter(tag=make_tag("id", chain)).exists()  # it is too frequent for them
    assert not is_merge_due(Indexed.objects.get(tenant_id=tenant.pk))


@pytest.mark.req("CARD-6")
def test_what_is_merged_while_a_search_reads_is_found(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a chain some are in buckets and become rows; of a hash they move between buckets."""
    chain = encode("chn", new_id())
    leave_buckets(monkeypatch)
    write_log(tenant, caller, 45, chain=chain, each=1)
    index_tenant(tenant.pk)
    facts = list(Fact.objects.filter(kind="invocation.began").order_by("pk"))
    wanted = {f"chain:{chain}": find(tenant, f"chain:{chain}"), hash_of(facts[2]): {facts[2].pk}}
    assert len(wanted[f"chain:{chain}"]) == 30

    def read_then_merge(*asked: Any, **more: Any) -> dict[bytes, dict[int, bytes]]:
        found = find_bucket_postings(*asked, **more)
        merge_buckets(tenant.pk)
        return found

    monkeypatch.setattr(engine, "find_bucket_postings", read_then_merge)
    before = PostingBucket.objects.count()

    assert {query: find(tenant, query) for query in wanted} == wanted
    assert PostingBucket.objects.count() != before
    assert {query: find(tenant, query) for query in wanted} == wanted


@pytest.mark.req("CARD-6")
@pytest.mark.django_db(transaction=True)
def test_two_keepers_and_a_search_at_the_same_time_see_each_tag_once(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_buckets(monkeypatch)
    write_log(tenant, caller, 40, each=1)
    index_tenant(tenant.pk)
    facts = list(Fact.objects.filter(tenant_id=tenant.pk, kind="invocation.began"))
    wrong: list[str] = []

    def merge() -> None:
        try:
            while is_merge_due(Indexed.objects.get(tenant_id=tenant.pk)):
                with suppress(OperationalError):  # SQLite: somebody else writes
                    merge_buckets(tenant.pk)
        finally:
            connections.close_all()

    keepers = [threading.Thread(target=merge) for _ in range(2)]
    for keeper in keepers:
        keeper.start()
    looks = 0
    while looks < len(facts) or any(keeper.is_alive() for keeper in keepers):
        fact = facts[looks % len(facts)]
        if (found := find(tenant, hash_of(fact))) != {fact.pk}:
            wrong.append(f"look {looks}: {found}")
        looks += 1
    for keeper in keepers:
        keeper.join()

    assert wrong == []
    assert read_index(tenant.pk) == compute_index(tenant.pk)
    assert PostingBucket.objects.filter(level=5).exists()


@pytest.mark.req("CARD-6")
def test_a_bucket_that_was_changed_is_a_problem_that_says_what_to_do(tenant: Tenant, caller: Caller) -> None:
    write_log(tenant, caller, 8, each=1)
    index_tenant(tenant.pk)
    fact = Fact.objects.filter(kind="invocation.began")[0]
    for row in PostingBucket.objects.all():
        content = bytearray(row.content)
        content[len(content) // 2] ^= 1
        PostingBucket.objects.filter(pk=row.pk).update(content=bytes(content))

    with pytest.raises(SearchIndexDamaged) as refused:
        find(tenant, hash_of(fact))
    assert "reindex_evidence" in refused.value.cure
    indexer.forget_index(tenant.pk)
    index_tenant(tenant.pk)

    assert find(tenant, hash_of(fact)) == {fact.pk}


@pytest.mark.req("CARD-6")
def test_a_tenant_finds_nothing_in_the_buckets_of_another(
    tenant: Tenant, caller: Caller, foreign_tenant: Tenant, foreign_caller: Caller
) -> None:
    for each, by in ((tenant, caller), (foreign_tenant, foreign_caller)):
        write_log(each, by, 9, each=2)
        index_tenant(each.pk)
    theirs = Fact.objects.filter(tenant_id=foreign_tenant.pk, kind="invocation.began")[0]
    span = exact_span("hash", bytes(theirs.leaf_hash).hex()[:20])

    assert find_bucket_postings(tenant.pk, [span], block_size=16) == {}
    assert list(find_bucket_postings(foreign_tenant.pk, [span], block_size=16)) == [span.low]
    assert find(tenant, hash_of(theirs)) == set()
    indexer.forget_index(foreign_tenant.pk)
    assert read_index(tenant.pk) == compute_index(tenant.pk)


@pytest.mark.req("CARD-6")
def test_what_was_merged_halfway_is_gone_on_with(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper that is told to stop, or dies, between any two transactions."""
    leave_buckets(monkeypatch)
    write_log(tenant, caller, 30, each=1)
    index_tenant(tenant.pk)
    fact = Fact.objects.filter(kind="invocation.began")[5]
    stops = 0
    while is_merge_due(Indexed.objects.get(tenant_id=tenant.pk)):
        merge_buckets(tenant.pk, StopAfter(6 + stops % 3))  # type: ignore[arg-type]
        stops += 1
        assert find(tenant, hash_of(fact)) == {fact.pk}
        assert read_index(tenant.pk) == compute_index(tenant.pk)

    assert stops > 3


@pytest.mark.req("CARD-6")
def test_an_index_that_is_made_again_while_its_buckets_are_merged_has_each_tag(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `reindex_evidence` beside a keeper that merges what was there before: between any two of its transactions."""
    leave_buckets(monkeypatch)
    write_log(tenant, caller, 45, each=1)
    index_tenant(tenant.pk)
    size = Indexed.objects.get(tenant_id=tenant.pk).size
    commits = iter(range(100))

    def reindex(point: str) -> None:
        if point == "merge.committed" and next(commits) == 2:
            indexer.forget_index(tenant.pk)
            for end in (10, 21, 30):  # the first leaves, as they are sealed one after the other
                take_up(tenant, end, monkeypatch)

    with monkeypatch.context() as patched:
        patched.setattr(bucket_merges, "inject_fault", reindex)
        merge_buckets(tenant.pk)
    assert Indexed.objects.get(tenant_id=tenant.pk).size == 30
    assert read_index(tenant.pk) == compute_index(tenant.pk)
    index_tenant(tenant.pk)
    merge_buckets(tenant.pk)

    assert Indexed.objects.get(tenant_id=tenant.pk).size == size
    assert read_index(tenant.pk) == compute_index(tenant.pk)
    assert PostingBucket.objects.filter(level=5).exists()


def take_up(tenant: Tenant, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves before ``end``, as if no more were sealed."""
    with monkeypatch.context() as patched:
        patched.setattr(indexer, "select_leaves", lambda tenant, low, high: select_leaves(tenant, low, min(high, end)))
        index_tenant(tenant.pk)


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("reached", [0, 10, 100])
def test_buckets_that_a_release_of_before_left_when_it_forgot_the_index_are_in_nobodys_way(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch, reached: int
) -> None:
    """It knows nothing of them, and has written so many leaves as rows before it was replaced again."""
    write_log(tenant, caller, 45, each=3)
    index_tenant(tenant.pk)
    left = PostingBucket.objects.count()
    Indexed.objects.filter(tenant_id=tenant.pk).update(size=0)
    for index in (Posting, IndexBlock):
        index.objects.filter(tenant_id=tenant.pk).delete()
    with monkeypatch.context() as patched:
        patched.setattr(indexer, "is_bucketed", lambda _: False)
        leave_buckets(patched)
        take_up(tenant, reached, monkeypatch)
    assert PostingBucket.objects.count() == left

    index_tenant(tenant.pk)
    for _ in range(30):  # over the end of the longest span
        write_call(caller.by, random.Random(9))
        seal(tenant)
        index_tenant(tenant.pk)

    assert {tag: sorted({*places}) for tag, places in read_index(tenant.pk).items()} == compute_index(tenant.pk)
    assert not is_merge_due(Indexed.objects.get(tenant_id=tenant.pk))


@pytest.mark.req("CARD-6")
def test_buckets_wait_until_each_tenant_s_facts_are_indexed_and_take_short_turns(
    tenant: Tenant, caller: Caller, foreign_tenant: Tenant, foreign_caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each, by in ((tenant, caller), (foreign_tenant, foreign_caller)):
        write_log(each, by, 30)
    done: list[str] = []
    listen(monkeypatch, indexer, "index_block", done)
    monkeypatch.setattr(bucket_merges, "inject_fault", lambda point: done.append(point) if "before" in point else None)
    monkeypatch.setattr(indexer, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(indexer, "MERGES_AT_ONCE", 3)
    index_round, turns = indexer.IndexRound(), []

    more = True
    while more:
        more = index_round.run()
        turns.append([*done])
        done.clear()

    merges = [turn.count("merge.before_commit") for turn in turns]
    assert max(merges) == 3
    assert merges[0] > 0  # while most is still to be taken up
    assert all(turn == sorted(turn) for turn in turns)  # blocks first
    assert max(turn.count("index_block") for turn in turns) == 4  # two of each tenant
    for each in (tenant, foreign_tenant):
        assert read_index(each.pk) == compute_index(each.pk)
        assert not is_merge_due(Indexed.objects.get(tenant_id=each.pk))


@pytest.mark.req("CARD-6")
def test_a_log_that_is_indexed_as_a_whole_is_merged_as_it_comes(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tenant, caller, 30)
    done: list[str] = []
    listen(monkeypatch, indexer, "index_block", done)
    monkeypatch.setattr(bucket_merges, "inject_fault", lambda point: done.append(point) if "before" in point else None)
    monkeypatch.setattr(indexer, "BLOCKS_AT_ONCE", 2)

    index_tenant(tenant.pk)

    assert "index_block" in done[done.index("merge.before_commit") :]
    assert read_index(tenant.pk) == compute_index(tenant.pk)


def listen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, done: list[str]) -> None:
    work = getattr(module, name)

    def work_and_say(*asked: Any, **more: Any) -> Any:
        done.append(name)
        return work(*asked, **more)

    monkeypatch.setattr(module, name, work_and_say)


@pytest.mark.req("CARD-6")
def test_a_bucket_that_cannot_be_merged_is_said_once_and_keeps_nothing_else(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        leave_buckets(patched)
        write_log(tenant, caller, 9, each=1)
        index_tenant(tenant.pk)
    damaged = PostingBucket.objects.filter(tenant_id=tenant.pk, first=0)
    damaged.update(content=b"no bucket")
    index_round = indexer.IndexRound()

    for _ in range(12):
        index_round.run()
        write_call(caller.by, random.Random(9))
        seal(tenant)
    index_round.run()

    (said,) = [record for record in caplog.records if record.name == "toolhub.search"]
    assert "reindex_evidence" in said.getMessage()
    assert said.exc_info is None
    indexed = Indexed.objects.get(tenant_id=tenant.pk)
    assert (indexed.size, indexed.merged) == (Seal.objects.filter(tenant_id=tenant.pk).count(), 0)
    newest = PostingBucket.objects.filter(level=RUNS, first__gte=indexed.size // 4 * 4).count()
    assert newest <= bucket_merges.MOST_RUNS  # runs are joined
    caplog.clear()
    indexer.forget_index(tenant.pk)
    index_tenant(tenant.pk)
    write_log(tenant, caller, 9)
    while index_round.run():
        pass

    assert caplog.records == []
    assert read_index(tenant.pk) == compute_index(tenant.pk)
    assert not is_merge_due(Indexed.objects.get(tenant_id=tenant.pk))


class StopAfter:
    """An event that is set after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = iter(range(looks))

    def is_set(self) -> bool:
        return next(self.looks, None) is None
