"""Sidebar: is each page within two clicks, does work begin where the role works, and do counts count what a person may decide?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.agents import services as agents
from access.consents.services import request_consent
from access.issuers import services as issuers
from access.roles import Role
from access.separation_of_duties import controls_agent, list_controlled_agents
from kernel.database.connections import database_time
from kernel.http.navigation import PLACES, Job
from registry.versions.services import submit_version
from tests.conftest import make_caller, make_person
from tests.support.manifests import manifest
from tests.support.populated_tenant import JWKS
from toolhub import sidebar
from toolhub.addresses import collect_navigation
from toolhub.overview import waiting_items
from toolhub.overview.waiting_items import list_waiting_groups
from toolhub.sidebar import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from tests.conftest import Caller, Person

MOST_ENTRIES = 12


def read_sidebar(person: Person, page: str = "overview") -> dict[str, dict[str, Any]]:
    response = person.client().get(reverse(page))
    assert response.status_code == 200
    return {item["key"]: item for group in response.context["nav"] for item in group["items"]}


@pytest.mark.req("CARD-3")
def test_the_sidebar_has_at_most_twelve_entries() -> None:
    assert len(Job) <= MOST_ENTRIES
    assert set(PLACES) == set(Job)
    assert all(entries for _, entries in collect_navigation())


@pytest.mark.req("CARD-3", "CARD-6")
@pytest.mark.parametrize("role", list(Role))
def test_each_page_that_a_role_may_see_is_within_two_clicks_and_no_other_is_offered(tenant: Tenant, role: Role) -> None:
    person = make_person(tenant, "rosa", role)
    client = person.client()
    seen = set()

    for job in read_sidebar(person).values():
        entry = client.get(job["url"])
        assert entry.status_code == 200, job["key"]
        for page in job["pages"]:
            seen.add(page["key"])
            assert page["url"] == job["url"] or f'href="{page["url"]}"' in entry.content.decode()
            opened = client.get(page["url"])
            assert opened.status_code == 200, page["key"]
            marked = opened.content.decode().count('aria-current="page"')
            assert marked == (3 if len(job["pages"]) > 1 else 2), page["key"]  # in both menus, and among the tabs

    may = {each.key for _, entries in collect_navigation() for each in entries if person.by.may(each.permission)}
    assert seen == may


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("role", list(Role))
def test_work_begins_on_the_page_of_the_role(tenant: Tenant, role: Role) -> None:
    person = make_person(tenant, "rosa", role)

    at = person.client().get(reverse("start")).headers["Location"]

    assert at == read_sidebar(person)[START[role]]["url"]
    assert person.client().get(at).status_code == 200


def test_who_has_several_roles_begins_with_the_one_that_allows_most(tenant: Tenant) -> None:
    person = make_person(tenant, "rosa", Role.AUDITOR, Role.OPERATOR)

    assert person.client().get(reverse("start")).headers["Location"] == reverse("overview")


@pytest.mark.req("CARD-3", "TOOLS-19")
def test_counts_are_of_what_this_person_may_decide(
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    caller: Caller,
    operator: Person,
    second_operator: Person,
    auditor: Person,
) -> None:
    enable(side_effect="Write", consent={"required": True})
    grant()
    tool = "sample.tools.echo"
    request_consent(tool=tool, versions="^1", purpose="Order for Ada.", validity_s=3600, by=caller.by)
    owned = make_caller(operator.by, "owned")
    request_consent(tool=tool, versions="^1", purpose="Order for Bob.", validity_s=3600, by=owned.by)
    submit_version(document=manifest("write"), by=operator.by)

    def count(person: Person) -> dict[str, int]:
        return {key: job["count"] for key, job in read_sidebar(person).items() if key in ("approvals", "reviews")}

    assert count(operator) == {"approvals": 1, "reviews": 0}
    assert count(second_operator) == {"approvals": 2, "reviews": 1}
    assert count(auditor) == {"approvals": 0}


@pytest.mark.req("CARD-3")
def test_what_others_must_decide_hides_nothing_that_waits_for_this_person(
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    operator: Person,
    second_operator: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest are of agents of their own."""
    monkeypatch.setattr(sidebar, "COUNTED", 2)
    monkeypatch.setattr(waiting_items, "READ_AT_ONCE", 2)
    enable(side_effect="Write", consent={"required": True})
    grant()
    for n, owner in enumerate((operator, operator, second_operator, second_operator, second_operator)):
        asker = make_caller(owner.by, f"asker-{n}")
        request_consent(tool="sample.tools.echo", versions="^1", purpose="Order.", validity_s=3600, by=asker.by)

    assert read_sidebar(operator)["approvals"]["count"] == 2
    [group] = [each for each in list_waiting_groups(operator.by, database_time()) if each.icon == "user-check"]
    assert len(group.items) == 3


@pytest.mark.req("TOOLS-19")
def test_the_agents_of_a_person_are_those_that_each_is_asked_about(
    caller: Caller, operator: Person, second_operator: Person, auditor: Person
) -> None:
    first = make_caller(operator.by, "first", scopes=("agents:manage", "tools:read"))
    second = agents.create_agent(name="second", by=first.by)
    keyed = agents.create_agent(name="keyed", by=auditor.by)
    agents.create_key(agent=keyed, by=second_operator.by)
    issuer = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=operator.by)
    issuers.map_identity(
        issuer_id=issuer.pk, subject="x", agent_id=caller.agent.pk, scopes=["tools:read"], by=second_operator.by
    )
    every = [first.agent, second, keyed, caller.agent]

    for person in (operator, second_operator, auditor):
        listed = list_controlled_agents(person.by.id, person.by.tenant_id)
        assert listed == {each.wire_id for each in every if controls_agent(person.by.id, each.pk)}
        assert listed
