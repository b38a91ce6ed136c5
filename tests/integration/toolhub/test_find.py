"""Finding: is everything found by its name and by a pasted id, by those who may see it and by nobody else?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access.models import ApiKey, Consent, Grant, PolicyVersion
from access.roles import PERMISSIONS, Role
from evidence.models import ExportJob, Fact
from invocations.models import Invocation
from kernel.ids import encode, encode_user
from registry.models import Tool, ToolVersion, VersionState
from tests.conftest import make_person
from tests.support.calls import row_of
from tests.support.populated_tenant import ECHO
from tests.support.statements import run_endless_statement
from toolhub.find import search
from toolhub.find.search import find_anything, load_finders

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things

pytestmark = pytest.mark.django_db


@pytest.fixture
def twins(populated_twins: tuple[Things, Things], bell: Bell) -> tuple[Things, Things]:
    return populated_twins


def everyone(things: Things) -> Person:
    return make_person(things.tenant, f"all-{things.word}", *Role)


def found_urls(text: str, person: Person) -> set[str]:
    return {
        thing.url
        for group in find_anything(text, by=person.by)
        if str(group.noun) not in ("Search on", "Pages")
        for thing in group.things
    }


def name_things(things: Things) -> dict[str, str]:
    """What somebody may paste, and the page that it leads to."""
    of = things.tenant.pk
    call = Invocation.objects.filter(tenant_id=of).exclude(request_id="").latest("pk")
    tool = Tool.objects.get(tenant_id=of, name=ECHO)
    waiting = ToolVersion.objects.filter(tool__tenant_id=of, review_state=VersionState.SUBMITTED).latest("pk")
    grant, consent = Grant.objects.filter(tenant_id=of).latest("pk"), Consent.objects.filter(tenant_id=of).latest("pk")
    policy = PolicyVersion.objects.filter(tenant_id=of).latest("pk")
    export, fact = ExportJob.objects.filter(tenant_id=of).latest("pk"), Fact.objects.filter(tenant_id=of).latest("pk")
    key, person = ApiKey.objects.filter(agent__tenant_id=of).latest("pk"), things.people["first"].user
    return {
        encode("tol", tool.pk): reverse("tool", args=[ECHO]),
        waiting.wire_id: reverse("review", args=[waiting.pk]),
        call.wire_id: reverse("invocation", args=[call.pk]),
        call.request_id: reverse("invocation", args=[call.pk]),
        things.caller.agent.wire_id: reverse("agent", args=[things.caller.agent.pk]),
        key.wire_id: reverse("agent", args=[key.agent_id]),
        encode_user(person.pk): reverse("person", args=[person.pk]),
        grant.wire_id: reverse("grant", args=[grant.pk]),
        consent.wire_id: reverse("consent", args=[consent.pk]),
        policy.wire_id: reverse("policy", args=[policy.pk]),
        encode("bud", things.named["budget_id"]): reverse("budget", args=[things.named["budget_id"]]),
        export.wire_id: reverse("export", args=[export.pk]),
        fact.wire_id: reverse("fact", args=[fact.pk]),
    }


@pytest.mark.req("TOOLS-22")
def test_a_pasted_id_leads_to_its_thing_and_in_another_tenant_to_nothing(twins: tuple[Things, Things]) -> None:
    mine, theirs = twins
    person = everyone(mine)
    own, foreign = name_things(mine), name_things(theirs)

    assert {text: url for text, url in own.items() if url not in found_urls(text, person)} == {}
    assert {text: found for text, url in foreign.items() if url in (found := found_urls(text, person))} == {}


@pytest.mark.req("TOOLS-22")
def test_a_word_finds_what_bears_it_in_ones_own_tenant_only(twins: tuple[Things, Things]) -> None:
    mine, theirs = twins
    person = everyone(mine)

    assert found_urls(mine.word, person) >= {reverse("person", args=[mine.people["first"].user.pk])}
    assert found_urls(theirs.word, person) == set()
    assert found_urls("ECHO", person) >= {reverse("tool", args=[ECHO])}
    waiting = ToolVersion.objects.get(tool__tenant_id=mine.tenant.pk, tool__name=ECHO, version="1.0.1")
    assert reverse("version", args=[waiting.pk]) in found_urls("echo 1.0.1", person)


@pytest.mark.req("TOOLS-22")
def test_nobody_finds_what_they_may_not_see(twins: tuple[Things, Things]) -> None:
    things, _ = twins
    developer = things.people["author"]
    names = name_things(things)

    for text, url in names.items():
        status = developer.client().get(url).status_code
        assert (url in found_urls(text, developer)) is (status == 200), (text, url)


def test_each_finder_asks_for_a_permission_that_there_is_and_has_a_place_of_its_own() -> None:
    finders = load_finders()

    assert len(finders) >= 15
    assert {finder.permission for finder in finders} <= set(PERMISSIONS)
    assert len({finder.order for finder in finders}) == len(finders)


def test_the_page_finds_without_scripts_and_a_fragment_is_its_part(twins: tuple[Things, Things]) -> None:
    things, _ = twins
    client = everyone(things).client()

    page = client.get("/find", {"q": "echo"})
    assert f'href="{reverse("tool", args=[ECHO])}"' in page.content.decode()
    assert '<form class="filters"' in page.content.decode()
    part = client.get("/find", {"q": "echo"}, headers={"HX-Request": "true", "HX-Target": "found"})
    assert part.content.decode().strip().startswith("<section")
    assert "Nothing of this name" not in part.content.decode()


def test_pages_of_the_console_are_found_by_who_may_open_them(operator: Person, developer: Person) -> None:
    def pages(person: Person, text: str) -> list[Any]:
        return [
            thing.url for group in find_anything(text, by=person.by) if group.noun == "Pages" for thing in group.things
        ]

    assert pages(operator, "kill") == ["/halts"]
    assert pages(developer, "kill") == []
    assert "/invocations" in pages(developer, "")


def test_single_keys_can_be_switched_off(operator: Person) -> None:
    client = operator.client()

    assert " data-keys" in client.get("/shortcuts").content.decode()
    answer = client.post("/shortcuts", {"keys": "off", "next": "/tools"})
    assert answer.headers["Location"] == "/tools"
    assert " data-keys" not in client.get("/tools").content.decode()
    assert (
        client.post("/shortcuts", {"keys": "on", "next": "https://elsewhere.example/"}).headers["Location"]
        == "/shortcuts"
    )
    assert " data-keys" in client.get("/tools").content.decode()


@pytest.mark.req("CARD-6")
def test_a_trace_leads_to_its_calls_also_as_a_whole_traceparent(
    instrumented: None,
    caller: Caller,
    operator: Person,
    stranger: Person,
    enable_by_review: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    enable_by_review()
    grant()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parent = f"00-{trace}-00f067aa0ba902b7-01"
    call = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"traceparent": parent}))
    url = reverse("invocation", args=[call.pk])

    assert found_urls(trace, operator) == {url}
    assert found_urls(parent, operator) == {url}
    assert found_urls(trace, stranger) == set()
    assert found_urls("0" * 32, operator) == set()


def test_a_noun_that_takes_too_long_is_named_and_the_others_answer(
    twins: tuple[Things, Things], monkeypatch: pytest.MonkeyPatch
) -> None:
    things, _ = twins
    finders = [
        replace(each, match=run_endless_statement) if str(each.noun) == "Grants" else each for each in load_finders()
    ]
    monkeypatch.setattr(search, "load_finders", lambda: finders)
    monkeypatch.setattr(search, "ALL_MS", 60_000)
    client = everyone(things).client()

    page = client.get("/find", {"q": "echo"}).content.decode()
    assert "<h2>Grants</h2>" in page
    assert "This takes too long to look through." in page
    assert f'href="{reverse("tool", args=[ECHO])}"' in page

    monkeypatch.setattr(search, "ALL_MS", 0)
    page = client.get("/find", {"q": "echo"}).content.decode()
    assert "<h2>Tools</h2>" in page
    assert f'href="{reverse("tool", args=[ECHO])}"' not in page


def test_a_pasted_text_is_looked_for_by_its_first_words_only(operator: Person) -> None:
    with CaptureQueriesContext(connection) as asked:
        find_anything(" ".join(f"w{n}" for n in range(100)), by=operator.by)

    text = " ".join(each["sql"] for each in asked)
    assert "%w5%" in text.lower()
    assert "%w6%" not in text.lower()


@pytest.mark.req("CARD-6")
def test_a_pasted_id_of_a_request_is_asked_for_apart_from_keys_of_calls(twins: tuple[Things, Things]) -> None:
    """Joined by OR, neither would be found by its index."""
    things, _ = twins
    person = everyone(things)
    [finder] = [each for each in load_finders() if each.prefix == "inv"]
    call = Invocation.objects.filter(tenant_id=things.tenant.pk).exclude(request_id="").latest("pk")

    with CaptureQueriesContext(connection) as asked:
        found = finder.find(call.request_id, by=person.by, most=5)

    assert reverse("invocation", args=[call.pk]) in [each.url for each in found]
    assert [
        each["sql"] for each in asked if '"request_id" =' in each["sql"] and '"idempotency_key" =' in each["sql"]
    ] == []
