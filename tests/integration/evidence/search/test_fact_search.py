"""Fact search: does a search find exactly the facts that match, page by page, whatever is sealed, indexed or still waits?"""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from access import services as access
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.call_begins import Begin
from evidence.leaves.call_ends import End
from evidence.models import GLOBAL_LOG, Fact, Indexed, Log, Pending, Posting, PostingBucket, Seal
from evidence.problems import ArchivedFactUnavailable, SearchInvalid
from evidence.search import engine, indexer
from evidence.search.engine import find_facts
from evidence.search.indexer import forget_index, index_all, index_tenant, tags_of_facts
from evidence.search.language import parse
from evidence.search.name_resolution import names_in
from evidence.search.posting_rows import add_posting_rows
from evidence.search.related_facts import facts_naming
from evidence.search.tags import UNREAD_TAG, build_tag_query, call_tag, make_tag
from invocations.models import Invocation
from invocations.services import record_replay
from kernel.ids import encode, new_id
from kernel.principal import ActorKind, Principal
from kernel.problems import SchemaInvalid
from tests.support.search_index import read_block_size, read_index, shorten_spans

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from access.models import Tenant
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
TOOLS = ("commerce.pricing.quote", "commerce.orders.place", "web.pages.read")
CODES = ("", "", "", "QUOTA.RATE_LIMITED", "SANDBOX.TIMEOUT")


def agent(by: Principal, name: str) -> Principal:
    made = access.create_agent(name=name, by=by)
    return Principal(ActorKind.AGENT, made.wire_id, name, by.tenant_id, agent_id=made.pk)


@transaction.atomic
def write_call(
    by: Principal, chosen: random.Random, *, chain: str = "", consent: str = "", proposed_by: Any = None
) -> UUID:
    """Begin and End of a call, as the hub writes them."""
    id, code, tool = new_id(), chosen.choice(CODES), chosen.choice(TOOLS)
    data: dict[str, Any] = {
        "input": {"commit": f"sha256:{chosen.randbytes(32).hex()}"},
        "policy": {"version": "tenant-1"},
    }
    data["decision"] = {"allowed": code != "QUOTA.RATE_LIMITED", "consent": bool(consent)}
    if chain:
        data["chain"] = {"id": chain}
    if consent:
        data["consent"] = consent
    if proposed_by:
        data["proposed_by"] = proposed_by
    state, now = "failed" if code else "succeeded", timezone.now()
    Invocation.objects.create(
        id=id, tenant_id=by.tenant_id, agent_id=by.agent(), tool=tool, state=state, created_at=now, finished_at=now
    )
    call: dict[str, Any] = {"invocation_id": id, "subject": encode("inv", id), "tool": tool}
    evidence.record(kind=Kind.INVOCATION_BEGAN, actor=by, data=Begin.from_data(data), **call)
    found = [{"action": "mask", "detector": "phone", "count": chosen.choice((0, 2))}]
    evidence.record(
        kind=Kind.INVOCATION_ENDED,
        actor=Principal.system("worker", tenant_id=by.tenant_id),
        outcome=state,
        reason=code,
        data=End.from_data({"obligations": found}),
        **call,
    )
    return id


def seal(tenant: Tenant, *, shuffled: random.Random | None = None) -> None:
    """What is pending gets into the log; with ``shuffled`` not in the order in which it was written, as with late transactions."""
    rows = list(Pending.objects.filter(tenant_id=tenant.pk).order_by("pk"))
    if shuffled:
        shuffled.shuffle(rows)
    begin = Seal.objects.filter(tenant_id=tenant.pk).count()
    Seal.objects.bulk_create(
        Seal(fact_id=row.pk, tenant_id=tenant.pk, leaf_index=index) for index, row in enumerate(rows, begin)
    )
    Pending.objects.filter(tenant_id=tenant.pk).delete()
    Log.objects.update_or_create(tenant_id=tenant.pk, defaults={"origin": tenant.slug, "size": begin + len(rows)})


@pytest.fixture
def by(tenant: Tenant) -> Principal:
    return Principal.system("test", tenant_id=tenant.pk)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few hundred facts fill many of them."""
    shorten_spans(monkeypatch.setattr)
    for name in ("_NEAR", "_NEAR_OF_MANY", "_FARTHER"):
        monkeypatch.setattr(engine, name, 2)  # so that most of them are far ones


def ids_of(tenant: Tenant, query: str, *, size: int = 7, **more: Any) -> list[UUID]:
    """All pages, forwards; then backwards again, which must show the same."""
    ask: dict[str, Any] = {"tenant_id": tenant.pk, "names": names_in(tenant.pk), "size": size, **more}
    page = find_facts(parse(query), **ask)
    assert page.newer == ""
    pages = [page.rows]
    while page.older:
        page = find_facts(parse(query), after=page.older, **ask)
        assert page.rows
        pages.append(page.rows)
    back, at = [pages[-1]], page
    while at.newer:
        at = find_facts(parse(query), before=at.newer, **ask)
        back.append(at.rows)
    forth = [fact.pk for rows in pages for fact in rows]
    assert [fact.pk for rows in reversed(back) for fact in rows] == forth
    assert all(len(rows) == size for rows in pages[:-1])
    return forth


def expected(tenant: Tenant, query: str) -> set[UUID]:
    asked = build_tag_query(parse(query), names_in(tenant.pk))
    facts = list(Fact.objects.filter(tenant_id=tenant.pk))
    return {fact.pk for fact, tags in zip(facts, tags_of_facts(facts), strict=True) if asked.met_by(tags)}


QUERIES = [
    "tool:commerce.*",
    "tool:commerce.orders.place outcome:failed",
    "code:QUOTA.*",
    "code:SANDBOX.TIMEOUT -tool:commerce.orders.place",
    "-kind:invocation.began -kind:invocation.ended",
    "-kind:invocation.* -tool:web.*",
    "-kind:*",
    "-outcome:succeeded -tool:web.*",
    "agent:assistant",
    "kind:invocation.* -agent:assistant",
    "verdict:denied",
    "pii:phone",
    "pii:any -pii:phone",
    "kind:agent.created kind:key.created",
    "orders",
    "orders quote",
    "commerce.orders",
    "-system:worker tool:web.pages.read",
    "outcome:nothing",
    "agent:nobody",
    "policy:tenant-1 verdict:consent",
    "kind:*",
]


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("small_blocks")
def test_a_search_finds_what_matches_and_nothing_else(
    query: str, tenant: Tenant, by: Principal, caller: Caller
) -> None:
    chosen = random.Random(query)
    robot = agent(by, "robot")
    for number in range(60):
        write_call(
            caller.by if number % 3 else robot, chosen, consent=encode("cns", new_id()) if number % 7 == 0 else ""
        )
        if number in (20, 31, 45):
            seal(tenant, shuffled=chosen)
        if number in (25, 45):
            index_tenant(tenant.pk)

    found = ids_of(tenant, query)

    assert len(found) == len(set(found))
    assert set(found) == expected(tenant, query)
    size = Indexed.objects.get(tenant_id=tenant.pk).size
    indexed = Seal.objects.filter(tenant_id=tenant.pk, leaf_index__lt=size).order_by("-leaf_index")
    in_log = [id for id in indexed.values_list("pk", flat=True) if id in set(found)]
    assert found[len(found) - len(in_log) :] == in_log  # newest first, in the order of the log
    assert found[: len(found) - len(in_log)] == [id for id in found if id not in set(in_log)]


@pytest.mark.req("CARD-6")
@pytest.mark.usefixtures("small_blocks")
def test_a_call_a_chain_a_consent_and_an_agent_have_all_that_became_of_them(
    tenant: Tenant, by: Principal, caller: Caller
) -> None:
    chosen, chain, consent = random.Random(1), encode("chn", new_id()), encode("cns", new_id())
    evidence.record(kind=Kind.CHAIN_CANCEL_ASKED, subject=chain, actor=caller.by)
    first, second = (
        write_call(caller.by, chosen, chain=chain),
        write_call(caller.by, chosen, chain=chain, consent=consent),
    )
    other = write_call(agent(by, "robot"), chosen)
    reader = Principal(ActorKind.USER, "usr_7", "Ann", by.tenant_id)
    evidence.record(kind=Kind.SNAPSHOT_READ, subject=encode("snp", new_id()), actor=reader, invocation_id=second)
    seal(tenant)

    for _ in range(2):  # while it waits, and once it is indexed
        assert len(ids_of(tenant, f"chain:{chain}")) == 6
        assert len(ids_of(tenant, f"consent:{consent}")) == 3
        assert len(ids_of(tenant, f"call:{encode('inv', first)}")) == 2
        assert len(ids_of(tenant, encode("inv", second))) == 3
        assert len(ids_of(tenant, f"agent:{caller.agent.wire_id} -kind:agent.created -kind:key.created")) == 6
        assert len(ids_of(tenant, f"agent:{caller.agent.name} actor:usr_7")) == 1
        assert ids_of(tenant, encode("inv", other)) == ids_of(tenant, f"call:{encode('inv', other)}")
        index_tenant(tenant.pk)


@pytest.mark.req("CARD-6")
@pytest.mark.usefixtures("small_blocks")
def test_a_call_has_facts_that_name_it_and_belong_to_another_or_to_none(tenant: Tenant, caller: Caller) -> None:
    chosen = random.Random(8)
    call = write_call(caller.by, chosen)
    id = encode("inv", call)
    record_replay(Invocation.objects.get(pk=call), by=caller.by)
    proposed = write_call(caller.by, chosen, proposed_by={"invocation": id, "model": "m-1", "proposal": "sha256:1"})
    seal(tenant)
    begin, end = Fact.objects.of_calls(proposed).order_by("pk")
    replayed = Fact.objects.get(kind=Kind.INVOCATION_REPLAYED)
    wanted = {fact.pk for fact in (*Fact.objects.of_calls(call), replayed, begin)}

    for _ in range(2):  # while they wait, and once they are indexed
        for query in (f"call:{id}", id):
            assert set(ids_of(tenant, query)) == wanted
        assert ids_of(tenant, f"kind:invocation.replayed -call:{id}") == []
        assert ids_of(tenant, f"kind:invocation.* -call:{id}") == [end.pk]
        assert {fact.pk for fact in facts_naming(caller.by, id)} == wanted
        index_tenant(tenant.pk)


@pytest.mark.req("CARD-6")
@pytest.mark.usefixtures("small_blocks")
def test_a_hash_is_found_whole_or_by_its_first_digits(tenant: Tenant, caller: Caller) -> None:
    chosen = random.Random(2)
    for _ in range(20):
        write_call(caller.by, chosen)
    seal(tenant)
    fact = Fact.objects.filter(kind=Kind.INVOCATION_BEGAN)[7]
    commit = bytes(fact.leaf).decode().split('"commit":"sha256:', 1)[1][:64]

    for _ in range(2):
        for query in (f"hash:{commit}", f"sha256:{commit}", commit[:8], f"hash:{bytes(fact.leaf_hash).hex()[:13]}"):
            assert ids_of(tenant, query) == [fact.pk]
        index_tenant(tenant.pk)


@pytest.mark.req("CARD-6")
@pytest.mark.usefixtures("small_blocks")
def test_what_was_indexed_as_rows_or_written_out_is_still_found(tenant: Tenant, caller: Caller) -> None:
    chosen, chain = random.Random(5), encode("chn", new_id())
    calls = [write_call(caller.by, chosen, chain=chain if number == 3 else "") for number in range(20)]
    seal(tenant)
    index_tenant(tenant.pk)
    hash = bytes(Fact.objects.filter(kind=Kind.INVOCATION_BEGAN)[7].leaf_hash).hex()
    queries = (f"hash:{hash}", f"hash:{hash[:13]}", f"chain:{chain}", chain)
    before = {query: ids_of(tenant, query) for query in queries}

    index = read_index(tenant.pk)
    PostingBucket.objects.all().delete()
    tags = {name: make_tag(name, value) for name, value in (("hash", hash[:20]), ("id", chain))}
    for written_out in (False, True):
        Posting.objects.filter(tag__in=tags.values()).delete()
        for (name, tag), value in zip(tags.items(), (hash[:20], chain), strict=True):
            for place in index[tag]:
                block, at = divmod(place, read_block_size())
                add_posting_rows(
                    tenant.pk, block, {f"{name}:{value}".encode() if written_out else tag: 1 << at}, had=True
                )

        assert {query: ids_of(tenant, query) for query in queries} == before
    assert [len(found) for found in before.values()] == [1, 1, 2, 2]
    assert not index.keys() & {call_tag(call) for call in calls}  # these have a column


@pytest.mark.req("CARD-6")
@pytest.mark.usefixtures("small_blocks")
def test_times_narrow_to_the_moment(tenant: Tenant, caller: Caller) -> None:
    chosen = random.Random(3)
    for number in range(40):
        write_call(caller.by, chosen)
        if number in (10, 20):
            seal(tenant, shuffled=chosen)
    index_tenant(tenant.pk)
    ids = list(Fact.objects.filter(tenant_id=tenant.pk).order_by("pk").values_list("pk", flat=True))
    low, high = ids[15], ids[70]
    begin, end = (datetime.fromtimestamp((id.int >> 80) / 1000, UTC) for id in (low, high))

    for query in ("", "kind:*", "tool:commerce.* -outcome:failed"):
        window = f"{query} after:{begin.isoformat()} before:{end.isoformat()}"
        within = [id for id in ids if (low.int >> 80) <= id.int >> 80 < (high.int >> 80)]
        assert set(ids_of(tenant, window)) == set(within) & expected(tenant, query)

    tomorrow = (timezone.now() + timedelta(days=1)).isoformat()
    assert ids_of(tenant, f"kind:* after:{tomorrow}") == ids_of(tenant, f"after:{tomorrow}") == []


# Whose facts.


@pytest.mark.req("CARD-6", "TOOLS-22")
def test_one_searches_in_ones_own_tenant_only(
    tenant: Tenant, foreign_tenant: Tenant, caller: Caller, foreign_caller: Caller
) -> None:
    chosen = random.Random(4)
    theirs = write_call(foreign_caller.by, chosen)
    mine = write_call(caller.by, chosen)
    for each in (tenant, foreign_tenant):
        seal(each)
    before = [ids_of(tenant, query) for query in ("kind:*", encode("inv", theirs), "agent:foreign-assistant")]
    index_all()
    after = [ids_of(tenant, query) for query in ("kind:*", encode("inv", theirs), "agent:foreign-assistant")]

    assert before == after
    assert after[1:] == [[], []]
    assert set(Fact.objects.filter(pk__in=after[0]).values_list("tenant_id", flat=True)) == {tenant.pk}
    assert len(ids_of(tenant, encode("inv", mine))) == 2
    assert ids_of(tenant, f"kind:* tenant:{tenant.wire_id}") == after[0]
    with pytest.raises(SearchInvalid, match="that you act in"):
        ids_of(tenant, f"kind:* tenant:{foreign_tenant.wire_id}")


@pytest.mark.req("CARD-6")
def test_a_cursor_that_no_list_gave_out_is_refused(tenant: Tenant) -> None:
    with pytest.raises(SchemaInvalid, match="cursor"):
        ids_of(tenant, "kind:*", after="fct_1")


# The index.


@pytest.mark.req("CARD-6")
def test_the_index_is_made_again_from_the_log(tenant: Tenant, caller: Caller) -> None:
    for _ in range(5):
        write_call(caller.by, random.Random(5))
    seal(tenant)
    index_all()
    rows = read_index(tenant.pk)

    forget_index(tenant.pk)
    assert read_index(tenant.pk) == {}
    assert not Posting.objects.exists() and not PostingBucket.objects.exists()
    index_all()

    assert read_index(tenant.pk) == rows
    assert Indexed.objects.get(tenant_id=tenant.pk).size == Fact.objects.filter(tenant_id=tenant.pk).count()


@pytest.mark.req("CARD-6")
def test_a_begin_that_cannot_be_read_keeps_nobody_from_searching(
    tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its columns say who called what; the rest is found once the archive gives it."""
    chain = encode("chn", new_id())
    call = write_call(caller.by, random.Random(5), chain=chain)
    begin, end = Fact.objects.of_calls(call).order_by("id")
    tool, wanted = begin.tool, f"kind:{end.kind} chain:{chain}"
    away = {begin.pk}

    def load_leaves(facts: Iterable[Fact]) -> None:
        if not away.isdisjoint(fact.pk for fact in facts):
            raise ArchivedFactUnavailable

    monkeypatch.setattr(indexer, "load_leaves", load_leaves)

    waiting = ids_of(tenant, f"kind:{end.kind} tool:{tool} agent:{begin.actor_id}")
    seal(tenant)
    index_all()
    indexed = ids_of(tenant, f"kind:{end.kind} tool:{tool} agent:{begin.actor_id}")
    indexer.index_unread()

    assert waiting == indexed == [end.pk]
    assert ids_of(tenant, wanted) == []
    with pytest.raises(ArchivedFactUnavailable):
        tags_of_facts([end])
    away.clear()
    indexer.index_unread()
    assert ids_of(tenant, wanted) == [end.pk]
    assert not Posting.objects.filter(tag=UNREAD_TAG).exists()
    index = read_index(tenant.pk)
    forget_index(tenant.pk)
    index_all()
    # What was taken up again is a row, and may be in a bucket as well.
    assert read_index(tenant.pk) == {tag: sorted({*places}) for tag, places in index.items()}


@pytest.mark.unmapped
@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("error", [RuntimeError, IntegrityError, DataError])
def test_a_tenant_that_cannot_be_indexed_keeps_no_other_waiting(
    tenant: Tenant,
    foreign_tenant: Tenant,
    caller: Caller,
    foreign_caller: Caller,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    write_call(caller.by, random.Random(5))
    write_call(foreign_caller.by, random.Random(5))
    for each in (tenant, foreign_tenant):
        seal(each)
    first = Log.objects.exclude(tenant_id=GLOBAL_LOG).values_list("tenant_id", flat=True)[0]
    index_block = indexer.index_block

    def fail(tenant_id: UUID, *, size: int) -> int:
        if tenant_id == first:
            raise error("as a leaf that nobody foresaw")
        return index_block(tenant_id, size=size)

    monkeypatch.setattr(indexer, "index_block", fail)
    index_all()

    assert set(Indexed.objects.filter(size__gt=0).values_list("tenant_id", flat=True)) == {
        tenant.pk,
        foreign_tenant.pk,
    } - {first}


@pytest.mark.req("CARD-6")
def test_two_keepers_take_nothing_up_twice(tenant: Tenant, caller: Caller) -> None:
    write_call(caller.by, random.Random(6))
    seal(tenant)
    index_tenant(tenant.pk)
    rows = read_index(tenant.pk)

    assert indexer.index_block(tenant.pk, size=0) == 0  # somebody else was there

    assert read_index(tenant.pk) == rows


@pytest.mark.req("CARD-6")
def test_more_than_waits_as_a_rule_is_said(tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_WAITING", 6)
    write_call(caller.by, random.Random(7))
    seal(tenant)
    index_tenant(tenant.pk)
    for _ in range(5):
        write_call(caller.by, random.Random(8))

    found = find_facts(parse("kind:*"), tenant_id=tenant.pk, names=names_in(tenant.pk))

    assert found.behind is not None
    assert len(found.rows) == 6 + Indexed.objects.get(tenant_id=tenant.pk).size


@pytest.mark.req("CARD-6")
@pytest.mark.django_db(transaction=True)
def test_the_keepers_loop_follows_the_log(tenant: Tenant, caller: Caller) -> None:
    with transaction.atomic():
        write_call(caller.by, random.Random(9))
        seal(tenant)
    stop = threading.Event()
    thread = threading.Thread(target=indexer.run_indexer, args=(stop,))
    thread.start()
    try:
        size = Log.objects.get(tenant_id=tenant.pk).size
        while not Indexed.objects.filter(tenant_id=tenant.pk, size=size).exists():
            assert thread.is_alive()
    finally:
        stop.set()
        thread.join(30)
    assert access.create_agent(name="later", by=caller.by).pk  # it holds nothing that others wait for
