"""List of calls: do people find a call by what they remember of it, with counts, a histogram, and a way to search on?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection

from access.display.services import set_display
from access.roles import Role
from evidence.services import compute_fingerprint
from invocations.call_search import pages
from invocations.models import Invocation
from invocations.saved_views.models import SavedView
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.pagination import fetch_page
from tests.conftest import make_caller, make_person
from tests.support.statements import run_endless_statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


@pytest.fixture
def made(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    operator: Person,
) -> dict[str, str]:
    """Calls by what became of them → their ids: two agents, one granted, one refused twice."""
    enable()
    grant()
    quiet = make_caller(operator.by, "quiet")
    answers = {
        "good": caller.invoke(ECHO, {"text": "x"}, request_id="order-0001", user_id="ann 7"),
        "invalid": caller.invoke(ECHO, {"text": 1}, request_id="order-0002"),
        "refused": quiet.invoke(ECHO, {"text": "x"}, request_id="order-0003"),
        "again": quiet.invoke(ECHO, {"text": "y"}, request_id="order-0004"),
    }
    return {name: answer.json()["call"]["call_id"] for name, answer in answers.items()}


def ask(person: Person, q: str = "", **asked: str) -> Any:
    return person.client().get("/invocations", ({"q": q} if q else {}) | asked)


def shown(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.context["wrong"]
    return [row.wire_id for row in answer.context["page"].rows]


QUERIES = {
    "": ["again", "refused", "invalid", "good"],
    "grant": ["again", "refused"],  # a word of the problem
    'problem:"grant"': ["again", "refused"],
    "-grant": ["invalid", "good"],
    "outcome:denied": ["again", "refused", "invalid"],
    "outcome:succeeded": ["good"],
    "outcome:faulty": [],
    "outcome:under_way": [],
    "state:denied code:AUTH.*": ["again", "refused"],
    "version:1.0.0": ["invalid", "good"],
    "version:1.*": ["invalid", "good"],
    "version:2.*": [],
    "took:>1h": [],
    "took:<1h": ["again", "refused", "invalid", "good"],
    "cost:>0.01": [],
    "for:quiet": ["again", "refused"],
    "origin:api": ["again", "refused", "invalid", "good"],
    "origin:mcp": [],
    "dry:yes": [],
    'user:"ann 7"': ["good"],
    "order-0001": ["good"],
    "nobody-has-this": [],
    "agent:quiet -order-0003": ["again"],
    "after:1h tool:sample.*": ["again", "refused", "invalid", "good"],
    "before:1h": [],
}


@pytest.mark.req("TOOLS-18", "CARD-6")
def test_a_call_is_found_by_what_somebody_remembers_of_it(made: dict[str, str], operator: Person) -> None:
    for call in Invocation.objects.filter(version=None, reason="AUTH.NO_GRANT"):
        assert call.wire_id in (made["refused"], made["again"])
    found = {q: shown(ask(operator, q)) for q in QUERIES if not q.startswith("version")}

    assert found == {q: [made[name] for name in names] for q, names in QUERIES.items() if not q.startswith("version")}
    of_version = Invocation.objects.filter(version__version="1.0.0").order_by("-pk")
    assert (
        shown(ask(operator, "version:1.0.0"))
        == shown(ask(operator, "version:1.*"))
        == [row.wire_id for row in of_version]
    )
    assert shown(ask(operator, "version:2.*")) == []


@pytest.mark.req("TOOLS-18")
def test_what_pages_and_charts_ask_by_are_terms_of_the_search(made: dict[str, str], operator: Person) -> None:
    answer = ask(operator, outcome="denied", agent="quiet", reason="AUTH.NO_GRANT", tool=ECHO)

    assert shown(answer) == [made["again"], made["refused"]]
    assert [chip["text"] for chip in answer.context["chips"]] == [
        "outcome:denied",
        f"tool:{ECHO}",
        "for:quiet",
        "code:AUTH.NO_GRANT",
    ]
    today = Invocation.objects.latest("pk").created_at.astimezone().date().isoformat()
    assert len(shown(ask(operator, **{"from": today, "to": today}))) == 4
    assert shown(ask(operator, to="2001-01-01")) == []


@pytest.mark.req("TOOLS-18")
def test_a_bad_qualifier_is_underlined_with_a_search_that_works(made: dict[str, str], operator: Person) -> None:
    answer = ask(operator, "tol:sample.tools.echo outcome:denied")

    [wrong] = answer.context["wrong"]
    assert answer.status_code == 422
    assert (wrong["before"], wrong["wrong"], wrong["after"]) == ("", "tol:sample.tools.echo", " outcome:denied")
    fixed = parse_qs(urlsplit(wrong["fixed"]).query)["q"][0]
    assert shown(ask(operator, fixed)) == [made["again"], made["refused"], made["invalid"]]
    [wrong] = ask(operator, "outcome:denyed").context["wrong"]
    assert parse_qs(urlsplit(wrong["fixed"]).query)["q"] == ["outcome:denied"]
    for q in ("took:long", "cost:much", "origin:moon", "dry:maybe", "kind:tool.enabled", 'tool:"'):
        assert ask(operator, q).status_code == 422, q


@pytest.mark.req("TOOLS-18")
def test_facets_count_and_lead_to_a_narrower_search(made: dict[str, str], operator: Person) -> None:
    answer = ask(operator)
    facets = {facet.name: facet for facet in answer.context["found"].facets}

    assert {(value.label, value.count) for value in facets["code"].values} == {
        ("AUTH.NO_GRANT", 2),
        ("SCHEMA.VALIDATION_FAILED", 1),
    }
    [quiet] = [value for value in facets["agent"].values if value.label == "quiet"]
    assert quiet.count == 2
    narrower = operator.client().get(quiet.url)
    assert shown(narrower) == [made["again"], made["refused"]]
    [chosen] = [value for facet in narrower.context["found"].facets if facet.name == "agent" for value in facet.values]
    assert chosen.is_chosen
    assert len(shown(operator.client().get(chosen.url))) == 4


@pytest.mark.req("TOOLS-18")
def test_the_histogram_counts_what_was_found_and_each_part_is_a_search(made: dict[str, str], operator: Person) -> None:
    for q, total in (("", 4), ("agent:quiet", 2), ("took:<1h outcome:denied", 3), ("after:30m", 4)):
        chart = ask(operator, q).context["found"].chart
        assert chart.total == total, q
        [column] = [each.column for each in chart.columns if each.column.total]
        assert len(shown(operator.client().get(column.url))) == total, q


@pytest.mark.req("TOOLS-18")
def test_equal_calls_stand_together_and_lead_to_each_of_them(made: dict[str, str], operator: Person) -> None:
    answer = ask(operator, "outcome:denied", view="groups")

    groups = answer.context["groups"]
    assert [(row["group"].count, row["group"].kind.reason) for row in groups] == [
        (2, "AUTH.NO_GRANT"),
        (1, "SCHEMA.VALIDATION_FAILED"),
    ]
    assert "2 ×" in answer.content.decode()
    assert shown(operator.client().get(groups[0]["url"])) == [made["again"], made["refused"]]


@pytest.mark.req("TOOLS-18")
def test_pages_continue_within_the_search(
    made: dict[str, str], operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "fetch_page", lambda rows, **asked: fetch_page(rows, limit=1, **asked))

    first = ask(operator, "grant")
    assert shown(first) == [made["again"]]
    assert "q=grant" in first.content.decode().partition('rel="next"')[2][:200]
    assert shown(ask(operator, "grant", after=first.context["page"].next)) == [made["refused"]]


@pytest.mark.req("TOOLS-18")
def test_people_choose_columns(made: dict[str, str], operator: Person) -> None:
    client = operator.client()
    assert "order-0001" not in client.get("/invocations").content.decode()

    answer = client.post("/invocations/columns", {"column": ["request", "cost"], "next": "/invocations?q=echo"})

    assert answer.headers["Location"] == "/invocations?q=echo"
    page = client.get("/invocations").content.decode()
    assert "order-0001" in page
    assert 'class="num">Took' not in page
    client.post("/invocations/columns", {"next": "https://elsewhere.example/"})
    assert client.get("/invocations").context["columns"] == []


@pytest.mark.req("TOOLS-22")
def test_nobody_finds_calls_of_another_tenant(made: dict[str, str], stranger: Person) -> None:
    for q in ("", "grant", made["good"], "order-0001", f"tool:{ECHO}", 'user:"ann 7"'):
        answer = ask(stranger, q)
        assert shown(answer) == []
        assert answer.context["found"].sample.count == 0


@pytest.mark.req("TOOLS-18")
def test_a_search_that_takes_too_long_says_what_would_narrow_it(
    made: dict[str, str], operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise StatementTooLong

    monkeypatch.setattr(pages, "take_sample", never)
    counted = ask(operator, "grant")
    assert shown(counted) == [made["again"], made["refused"]]
    assert "too many to count" in counted.content.decode()
    monkeypatch.setattr(pages, "LIMIT_MS", 50)
    monkeypatch.setattr(pages, "find_calls", run_endless_statement)
    answer = ask(operator, "grant")
    assert answer.status_code == 200
    assert "This search takes too long." in answer.content.decode()
    assert "after%3A24h" in answer.content.decode()


@pytest.mark.req("TOOLS-18")
def test_a_statement_beyond_its_time_is_given_up_and_the_connection_goes_on(made: dict[str, str]) -> None:
    with pytest.raises(StatementTooLong), limit_statements(50):
        run_endless_statement()

    with limit_statements(10_000):
        assert Invocation.objects.count() == 4
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    "asked",
    [
        {"q": "before:0001-01-01"},
        {"q": "after:9999-12-31"},
        {"q": "after:9999-12-31 before:0001-01-01"},
        {"to": "0001-01-01"},
        {"to": "9999-12-31", "from": "0001-01-01"},
        {"q": "took:>999999999h"},
    ],
)
def test_times_beyond_all_calls_find_what_they_say(
    made: dict[str, str], operator: Person, asked: dict[str, str]
) -> None:
    everything = "from" in asked

    assert len(shown(operator.client().get("/invocations", asked))) == (len(made) if everything else 0)


@pytest.mark.req("TOOLS-18")
def test_no_call_takes_longer_than_the_longest_time_that_can_be_asked_for(
    made: dict[str, str], operator: Person
) -> None:
    assert len(shown(ask(operator, "took:<999999999h"))) == len(made)


# Saved views.


@pytest.mark.req("TOOLS-18")
def test_a_view_whose_letters_stand_for_many_has_an_address(made: dict[str, str], operator: Person) -> None:
    client = operator.client()

    saved = client.post("/views", {"name": "\ufdfa" * 60, "query": "grant"})

    assert saved.status_code == 302
    assert len(SavedView.objects.get().slug) <= 80
    assert shown(client.get(saved.headers["Location"], follow=True)) == [made["again"], made["refused"]]


@pytest.mark.req("TOOLS-18")
def test_a_saved_view_is_an_address_of_its_owner_alone(made: dict[str, str], operator: Person, tenant: Any) -> None:
    client = operator.client()
    other = make_person(tenant, "olaf", Role.OPERATOR).client()

    saved = client.post("/views", {"name": "Refused for want of a grant", "query": "grant outcome:denied"})
    assert saved.headers["Location"] == "/views/refused-for-want-of-a-grant"
    opened = client.get("/views/refused-for-want-of-a-grant", follow=True)
    assert shown(opened) == [made["again"], made["refused"]]
    assert "Refused for want of a grant" in opened.content.decode()

    assert other.get("/views/refused-for-want-of-a-grant").status_code == 404
    row = SavedView.objects.get()
    assert other.post(f"/views/{row.wire_id}/delete").status_code == 404
    client.post("/views", {"name": "refused for want of a GRANT", "query": "grant"})
    assert SavedView.objects.get().query == "grant"
    client.post(f"/views/{row.wire_id}/delete")
    assert not SavedView.objects.exists()


@pytest.mark.req("TOOLS-18")
def test_views_of_other_names_do_not_replace_each_other(made: dict[str, str], operator: Person) -> None:
    client = operator.client()

    for name, query in (("Last day!", "grant"), ("Last day?", "echo"), ("!!!", "grant"), ("???", "echo")):
        client.post("/views", {"name": name, "query": query})
    client.post("/views", {"name": "last day?", "query": "outcome:denied"})

    kept = {row.slug: (row.name, row.query) for row in SavedView.objects.all()}
    assert kept == {
        "last-day": ("Last day!", "grant"),
        "last-day-2": ("last day?", "outcome:denied"),
        "view": ("!!!", "grant"),
        "view-2": ("???", "echo"),
    }


@pytest.mark.req("TOOLS-18")
def test_a_view_keeps_a_person_as_a_keyed_hash_and_still_finds_their_calls(
    made: dict[str, str], operator: Person, tenant: Any
) -> None:
    client = operator.client()

    client.post("/views", {"name": "Ann", "query": 'user:"ann 7"'})

    kept = SavedView.objects.get()
    assert kept.query == f"user:{compute_fingerprint(b'ann 7', tenant_id=tenant.pk)}"
    assert shown(client.get("/views/ann", follow=True)) == [made["good"]]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("name", "query"), [("", "echo"), ("x" * 61, "echo"), ("x", ""), ("x", "tol:1"), ("x", "kind:tool.enabled")]
)
def test_a_view_that_could_not_be_opened_is_not_kept(name: str, query: str, operator: Person) -> None:
    answer = operator.client().post("/views", {"name": name, "query": query})

    assert answer.status_code == 422
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", "kind:invocation.*"),
        (
            "tool:commerce.* for:shopper state:failed after:24h",
            "kind:invocation.* tool:commerce.* agent:shopper outcome:failed after:24h",
        ),
        ("-code:POLICY.DENIED", "kind:invocation.* -code:POLICY.DENIED"),
        ("state:queued", None),
        ("outcome:faulty", None),
        ("took:>10s tool:x.y", None),
        ("words alone", None),
    ],
)
def test_a_search_of_calls_leads_to_an_export_of_their_facts_where_these_can_be_asked_so(
    query: str, asked: str | None, auditor: Person
) -> None:
    client = auditor.client()
    context = client.get("/invocations", {"q": query}).context

    found = parse_qs(urlsplit(context["export"]).query).get("query", [None])[0]

    assert found == asked
    if asked is not None:
        assert client.get(context["export"]).status_code == 200


def test_the_days_of_an_exported_search_of_calls_are_those_of_who_searched(auditor: Person) -> None:
    set_display(time_zone="Asia/Shanghai", user=auditor.user)

    context = auditor.client().get("/invocations", {"from": "2026-11-26", "q": "before:2026-11-28T10:00"}).context

    assert parse_qs(urlsplit(context["export"]).query)["query"] == [
        "kind:invocation.* before:2026-11-28T10:00:00+08:00 after:2026-11-26T00:00:00+08:00"
    ]
