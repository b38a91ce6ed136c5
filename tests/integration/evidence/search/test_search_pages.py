"""Search pages: do auditors find what they look for in the console and over REST, and does everybody see no more than they may?"""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access.roles import Role
from evidence import services as evidence
from evidence.archives.bundles import forget_bundles
from evidence.kinds import PAIR, Kind
from evidence.models import Fact, Indexed, Posting, SavedSearch
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.search import api, engine, pages
from evidence.search.call_postings import find_call_postings
from evidence.search.facts_at import read_facts_at
from evidence.search.indexer import index_all
from evidence.search.posting_rows import read_posting_rows
from evidence.search.tags import TagSpan, exact_span, prefix_span
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.ids import encode, new_id
from kernel.principal import Principal
from tests.conftest import make_caller, make_person
from tests.support.calls import assert_problem, row_of
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.raw_database import sql, take_down_triggers
from tests.support.statements import run_endless_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from uuid import UUID

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def index_everything() -> None:
    with signing_with():
        seal_everything()
    index_all()


def page(person: Person, query: str, **more: str) -> Any:
    return person.client().get("/evidence", {"q": query, **more})


def shown(answer: Any) -> list[str]:
    return [fact.wire_id for fact in answer.context["found"].rows]


@pytest.fixture
def call(caller: Caller, enable_by_review: Callable[..., Tool], grant: Callable[..., Any], bell: Bell) -> Any:
    enable_by_review()
    grant()
    return row_of(caller.invoke(ECHO, {"text": "x"}))


@pytest.fixture
def dropped(call: Any, settings: Any, tmp_path: Path) -> Iterator[Path]:
    """Where the archive should be in which the leaves of the call are, and are not."""
    index_everything()
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}/kept"
    forget_bundles()
    take_down_triggers()
    sql("UPDATE evidence_fact SET leaf = %s WHERE invocation_id = %s", b"", call.pk)
    yield tmp_path / "kept"
    forget_bundles()


# The page.


@pytest.mark.parametrize("problem", [ArchivedFactUnavailable, ArchivedFactLost])
def test_a_leaf_that_cannot_be_had_keeps_nobody_from_the_columns_of_facts(
    problem: type[ArchivedFactUnavailable], call: Any, dropped: Path, auditor: Person
) -> None:
    if problem is ArchivedFactLost:
        dropped.mkdir()  # it answers, and has nothing
    begin, end = Fact.objects.filter(invocation_id=call.pk).order_by("pk")
    client = auditor.client()
    story, record = (client.get(reverse(name, args=[call.pk])) for name in ("invocation", "invocation_record"))
    timeline = page(auditor, call.wire_id, view="timeline")
    listed = client.get("/api/v1/evidence/facts", {"q": call.wire_id}).json()["data"]["facts"]
    alone = client.get(reverse("fact", args=[begin.pk]))

    assert shown(timeline) == [end.wire_id, begin.wire_id]
    for answer, times in ((story, 2), (record, 2), (timeline, 1)):
        assert answer.status_code == 200
        assert answer.content.decode().count(problem.title()) >= times
    assert "Without arguments that its schema knows" not in story.content.decode()
    assert [(each["id"], each["leaf"], each["leaf_problem"]) for each in listed] == [
        (each.wire_id, None, problem.reason) for each in (end, begin)
    ]
    assert alone.status_code == problem.status


@pytest.mark.req("CARD-6", "TOOLS-18", "TOOLS-21")
@pytest.mark.parametrize("view", ["table", "timeline"])
def test_an_auditor_finds_a_call_by_what_is_known_of_it(view: str, call: Any, caller: Caller, auditor: Person) -> None:
    begin, end = (fact.wire_id for fact in Fact.objects.filter(invocation_id=call.pk).order_by("pk"))
    commit = json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind__in=PAIR[:2]).leaf))["data"]["input"][
        "commit"
    ]

    for _ in range(2):
        for query in (
            call.wire_id,
            f"call:{call.wire_id}",
            f"tool:sample.* agent:{caller.agent.name}",
            "echo kind:invocation.*",
        ):
            assert set(shown(page(auditor, query, view=view))) == {begin, end}, query
        assert shown(page(auditor, commit[7:15], view=view)) == [begin]
        assert shown(page(auditor, "echo kind:invocation.* outcome:succeeded", view=view)) == [end]
        index_everything()


@pytest.mark.req("CARD-6")
def test_a_fragment_is_the_rows_and_the_address_is_the_query(call: Any, auditor: Person) -> None:
    client = auditor.client()

    fragment = client.get("/evidence", {"q": "kind:tool.enabled"}, headers={"HX-Request": "true", "HX-Target": "rows"})

    assert fragment.content.decode().lstrip().startswith("<section")
    assert "q=kind%3Atool.enabled" in fragment.content.decode()


@pytest.mark.req("CARD-6")
def test_filters_of_older_addresses_still_work(call: Any, auditor: Person) -> None:
    found = auditor.client().get("/evidence", {"kind": "tool.enabled", "tool": ECHO})

    assert [fact.kind for fact in found.context["found"].rows] == ["tool.enabled"]
    assert found.context["text"] == f"kind:tool.enabled tool:{ECHO}"


@pytest.mark.req("CARD-6")
def test_a_query_that_is_not_understood_comes_back_with_its_mistakes_marked(auditor: Person) -> None:
    answer = page(auditor, "tol:x kind:tool.enabled after:soon")

    text = answer.content.decode()
    assert answer.status_code == 422
    assert "<mark>tol:x</mark> kind:tool.enabled after:soon" in text
    assert "<code>tool:x</code>" in text
    assert "<mark>after:soon</mark>" in text
    assert 'value="tol:x kind:tool.enabled after:soon"' in text  # what was typed is kept


@pytest.mark.req("CARD-6")
def test_an_empty_page_says_what_to_leave_out(call: Any, auditor: Person) -> None:
    text = page(auditor, "tool:nothing.here kind:tool.enabled").content.decode()

    assert "No fact matches" in text
    assert 'href="?q=kind%3Atool.enabled"' in text
    assert 'href="?q=tool%3Anothing.here"' in text


@pytest.mark.req("CARD-6")
def test_a_search_that_takes_too_long_says_what_would_narrow_it(
    call: Any, caller: Caller, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (pages, api):
        monkeypatch.setattr(where, "LIMIT_MS", 50)
        monkeypatch.setattr(where, "find_facts", run_endless_statement)

    answer = page(auditor, "tool:sample.* before:2100-01-01")
    assert answer.status_code == 200
    assert "This search takes too long." in answer.content.decode()
    assert [each["to"] for each in answer.context["too_broad"]] == [
        "?q=tool%3Asample.%2A+after%3A24h",
        "?q=tool%3Asample.%2A+after%3A7d",
    ]
    assert_problem(caller.get("/evidence/facts?q=tool:sample.*"), 503, "EVIDENCE.SEARCH_TOO_BROAD")


@pytest.mark.req("CARD-6")
def test_a_search_of_many_statements_begins_none_after_its_time(tenant: Tenant) -> None:
    with pytest.raises(StatementTooLong), limit_statements(50):
        while True:  # each of them is short
            Fact.objects.filter(tenant_id=tenant.pk).exists()

    assert not Fact.objects.filter(pk=new_id()).exists()  # the connection goes on


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    "ask",
    [
        lambda tenant: list(read_posting_rows(tenant, [exact_span("kind", "x"), prefix_span("tool", "a.")], [0])),
        lambda tenant: read_facts_at(tenant, [0], newer=False),
        lambda tenant: find_call_postings(tenant, [new_id()], size=1, block_size=1),
    ],
)
def test_a_search_of_many_prepared_statements_begins_none_after_its_time(
    tenant: Tenant, ask: Callable[[UUID], object]
) -> None:
    with pytest.raises(StatementTooLong), limit_statements(50):
        while True:
            ask(tenant.pk)

    assert not Fact.objects.filter(pk=new_id()).exists()


def test_posting_rows_are_those_of_the_tags_in_the_blocks_whichever_are_asked_for(tenant: Tenant) -> None:
    tags = [b"kind:a", b"kind:b", b"tool:a.b", b"tool:a.c", b"tool:b", b"\1\xff\x00'\\"]
    Posting.objects.bulk_create(
        Posting(tenant_id=owner, tag=tag, block=block, places=b"\0%c" % block)
        for owner in (tenant.pk, new_id())
        for tag in tags
        for block in range(40)
        if owner != tenant.pk or (block + tags.index(tag)) % 3
    )
    asked = {
        "one": [exact_span("kind", "a")],
        "several": [exact_span("kind", "a"), exact_span("kind", "c"), TagSpan(tags[-1], tags[-1] + b"\0")],
        "a beginning": [prefix_span("tool", "a.")],
        "both": [exact_span("kind", "b"), prefix_span("tool", "a"), prefix_span("kind", "")],
        "those within others": [
            *(prefix_span("tool", "abc"[:letters]) for letters in range(3)),
            exact_span("tool", "b"),
            exact_span("kind", "a"),
            exact_span("kind", "a"),
        ],
    }

    for spans in asked.values():
        for blocks in ([7], list(range(30, 4, -1)), [39, 2, 1]):
            found = list(read_posting_rows(tenant.pk, spans, blocks))

            wanted = {
                (tag, block, b"\0%c" % block)
                for tag in tags
                for block in range(min(blocks), max(blocks) + 1)
                if (block in blocks or len(blocks) > 3) and (block + tags.index(tag)) % 3
                if any(span.holds(tag) for span in spans)
            }
            assert {(bytes(tag), block, bytes(places)) for tag, block, places in found} == wanted
            assert len(found) == len(wanted)


@pytest.mark.req("CARD-6")
def test_a_short_page_reads_no_more_facts_than_it_shows_and_one_that_follows(
    tenant: Tenant, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    by, read, client = Principal.system("test", tenant_id=tenant.pk), list[int](), auditor.client()
    for _ in range(30):
        evidence.record(kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=by)
    index_everything()

    def note(tenant_id: UUID, places: list[int], *, newer: bool) -> list[Fact]:
        read.append(len(places))
        return read_facts_at(tenant_id, places, newer=newer)

    monkeypatch.setattr(engine, "read_facts_at", note)
    found = client.get("/api/v1/evidence/facts", {"q": "kind:tool.paused", "limit": "2"}).json()["data"]

    assert len(found["facts"]) == 2
    assert found["next"]
    assert read == [3]


@pytest.mark.req("CARD-6")
def test_pages_lead_on_and_back_with_the_query(tenant: Tenant, auditor: Person) -> None:
    by = Principal.system("test", tenant_id=tenant.pk)
    for _ in range(120):
        evidence.record(kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=by)
    index_everything()
    first = page(auditor, "kind:tool.paused")
    second = page(auditor, "kind:tool.paused", after=first.context["found"].older)
    third = page(auditor, "kind:tool.paused", after=second.context["found"].older)
    back = page(auditor, "kind:tool.paused", before=third.context["found"].newer)

    assert [len(shown(each)) for each in (first, second, third)] == [50, 50, 20]
    assert third.context["found"].older == ""
    assert shown(back) == shown(second)
    assert f"?q=kind%3Atool.paused&amp;after={first.context['found'].older}" in first.content.decode()


@pytest.mark.req("CARD-6")
def test_a_page_of_a_search_asks_the_same_number_of_questions_however_much_there_is(
    tenant: Tenant, auditor: Person
) -> None:
    by = Principal.system("test", tenant_id=tenant.pk)
    client, asked = auditor.client(), []
    for count in (10, 300):
        for _ in range(count):
            evidence.record(kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=by)
        index_everything()
        with CaptureQueriesContext(connection) as seen:
            client.get("/evidence", {"q": "kind:tool.paused -outcome:failed after:7d"})
        asked.append(len(seen))
        of_facts = [each["sql"] for each in seen if "evidence_" in each["sql"]]
        assert not any("COUNT(" in sql or "OFFSET" in sql for sql in of_facts)

    assert asked[0] == asked[1]


@pytest.mark.req("CARD-6")
def test_a_timeline_joins_begin_and_end_and_says_who_and_how_long(call: Any, auditor: Person) -> None:
    text = page(auditor, f"call:{call.wire_id}", view="timeline").content.decode()

    rows = text.split('<ol class="tl">', 1)[1].split("</ol>", 1)[0]
    assert rows.count("<li") == 1
    assert "began" in rows
    assert "after" in rows
    assert f'href="/evidence/{Fact.objects.filter(invocation_id=call.pk).latest("pk").wire_id}"' in rows


@pytest.mark.req("CARD-6", "SPEC-10")
def test_a_user_is_found_by_their_id_which_no_fact_holds(call: Any, caller: Caller, auditor: Person) -> None:
    row = row_of(caller.invoke(ECHO, {"text": "x"}, user_id="ann 7"))

    for _ in range(2):
        found = page(auditor, 'user:"ann 7" kind:invocation.*').context["found"].rows
        assert {fact.invocation_id for fact in found} == {row.pk}
        assert shown(page(auditor, 'user:"ann 8"')) == []
        index_everything()
    hashed = json.loads(bytes(found[-1].leaf))["data"]["user"]
    assert shown(page(auditor, f"user:{hashed} kind:invocation.*")) == [fact.wire_id for fact in found]
    assert not any(b"ann 7" in bytes(leaf) for leaf in Fact.objects.values_list("leaf", flat=True))


@pytest.mark.req("CARD-6")
def test_a_timeline_tells_the_reason_that_somebody_wrote(call: Any, auditor: Person) -> None:
    text = page(auditor, "kind:tool.enabled", view="timeline").content.decode()

    assert "for a test" in text


# Who sees what.


@pytest.mark.req("CARD-6", "TOOLS-22")
def test_nobody_of_another_tenant_finds_a_call(call: Any, foreign_tenant: Tenant) -> None:
    stranger = make_person(foreign_tenant, "sue", Role.AUDITOR)

    for _ in range(2):
        for query in (call.wire_id, "", "kind:*", "tool:sample.*", f"actor:{call.agent.wire_id}"):
            assert call.wire_id not in [fact.subject for fact in page(stranger, query).context["found"].rows]
        index_everything()


@pytest.mark.req("CARD-6", "TOOLS-22")
def test_an_agent_finds_what_it_did_and_its_calls_and_nothing_else(
    call: Any, caller: Caller, operator: Person, auditor: Person, tenant: Tenant, grant: Callable[..., Any]
) -> None:
    robot = make_caller(Principal.system("test", tenant_id=tenant.pk), "robot", scopes=("invocations:read",))
    own = make_caller(
        Principal.system("test", tenant_id=tenant.pk), "own", scopes=("invocations:read", "invocations:create")
    )
    denied = row_of(own.invoke(ECHO, {"text": "x"}))
    with transaction.atomic():
        evidence.record(
            kind=Kind.SNAPSHOT_READ, subject=encode("snp", new_id()), actor=auditor.by, invocation_id=denied.pk
        )

    for _ in range(2):
        facts = own.get("/evidence/facts").json()["data"]["facts"]
        assert {fact["call"] for fact in facts} == {denied.wire_id}
        assert sorted(fact["kind"] for fact in facts) == ["invocation.began", "invocation.ended"]
        assert own.get(f"/evidence/facts?q=call:{call.wire_id}").json()["data"]["facts"] == []
        assert robot.get("/evidence/facts").json()["data"]["facts"] == []
        everything = caller.get("/evidence/facts?q=kind:invocation.*").json()["data"]["facts"]  # evidence:read
        assert {fact["call"] for fact in everything} == {call.wire_id, denied.wire_id}
        index_everything()


@pytest.mark.req("CARD-6")
def test_people_search_over_rest_with_their_permission(call: Any, auditor: Person, developer: Person) -> None:
    client = auditor.client()

    found = client.get("/api/v1/evidence/facts", {"q": call.wire_id}).json()["data"]
    wrong = client.get("/api/v1/evidence/facts", {"q": "tol:x"})

    assert [fact["kind"] for fact in found["facts"]] == ["invocation.ended", "invocation.began"]
    assert found["next"] is found["previous"] is found["indexed_until"] is None
    assert wrong.status_code == 422
    assert wrong.json()["error"]["reason"] == "EVIDENCE.SEARCH_INVALID"
    assert wrong.json()["error"]["remedy"] == "Write instead: tool:x"
    assert developer.client().get("/api/v1/evidence/facts").status_code == 403


# Saved searches.


def save(person: Person, name: str, query: str, **more: str) -> Any:
    return person.client().post("/evidence/searches", {"name": name, "query": query, **more})


@pytest.mark.req("CARD-6")
def test_a_saved_search_leads_back_to_its_query(auditor: Person, operator: Person) -> None:
    answer = save(auditor, "Refused", "outcome:denied -code:QUOTA.*")

    assert answer.headers["Location"] == "/evidence?q=outcome%3Adenied+-code%3AQUOTA.%2A"
    assert "Refused" in page(auditor, "").content.decode()
    assert "Refused" not in page(operator, "").content.decode()  # it is not shared


@pytest.mark.req("CARD-6")
def test_a_shared_search_is_seen_by_all_and_changed_by_its_owner(auditor: Person, operator: Person) -> None:
    save(auditor, "Refused", "outcome:denied", shared="on")
    row = SavedSearch.objects.get()
    address = f"/evidence/searches/{row.wire_id}"

    assert "Refused" in page(operator, "").content.decode()
    assert operator.client().post(address, {"name": "Mine now"}).status_code == 403
    assert operator.client().post(f"{address}/delete").status_code == 403
    assert auditor.client().post(address, {"name": "Denied"}).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.shared) == ("Denied", False)
    assert operator.client().post(f"{address}/delete").status_code == 404  # not theirs to see any more
    assert auditor.client().post(f"{address}/delete").status_code == 302
    assert not SavedSearch.objects.exists()


@pytest.mark.req("CARD-6", "SPEC-10")
def test_a_saved_search_holds_no_id_of_a_person(auditor: Person) -> None:
    save(auditor, "Of one person", 'user:"ann@example.org"')

    assert SavedSearch.objects.get().query.startswith("user:hmac-sha256:")


@pytest.mark.req("CARD-6")
def test_a_saved_search_is_short_enough_also_with_the_hashes_of_people(auditor: Person) -> None:
    answer = save(auditor, "Of many people", " ".join(f"user:{number}" for number in range(20)))

    assert answer.status_code == 422
    assert not SavedSearch.objects.exists()


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("name", "query"), [("", "kind:*"), ("x", ""), ("x" * 61, "kind:*"), ("x", "tol:1"), ("taken", "kind:*")]
)
def test_a_search_that_cannot_be_saved_is_told_why(name: str, query: str, auditor: Person) -> None:
    save(auditor, "taken", "kind:*")

    answer = save(auditor, name, query)

    assert answer.status_code == 422
    assert SavedSearch.objects.count() == 1


# Operating it.


@pytest.mark.req("CARD-6")
def test_the_index_is_made_again_by_a_command(call: Any, tenant: Tenant) -> None:
    index_everything()
    size = Indexed.objects.get(tenant_id=tenant.pk).size
    told = StringIO()

    call_command("reindex_evidence", "--tenant", tenant.slug, stdout=told)

    assert told.getvalue() == f"{tenant.wire_id}: {size} facts are indexed.\n"
    with pytest.raises(CommandError, match="no tenant nobody"):
        call_command("reindex_evidence", "--tenant", "nobody")
