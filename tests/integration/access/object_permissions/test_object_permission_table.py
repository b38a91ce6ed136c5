"""The table of object permissions: does a permission on one thing open what is done with that thing, at every address of the
console, and nothing else?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from guardian.shortcuts import get_user_perms

from access.members import services as members
from access.object_permissions.rules import list_object_permissions
from access.roles import ON_AGENT, ON_TOOL, Role
from tests.conftest import make_person
from tests.support.populated_tenant import make_things, send
from tests.support.request_bodies import forms
from tests.support.request_preparations import prepare
from tests.support.routes import console_routes
from tests.support.tenant_rows import rows_of

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Person
    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things
    from tests.support.routes import Route

pytestmark = pytest.mark.django_db
GOVERNED = [route for route in console_routes() if route.needs]
EXCEPTIONAL = [(route, method) for route in GOVERNED if hasattr(route.held, "find") for method in route.methods]
# The key carries a scope that nobody gives, or gives again, who may do what it is for with one thing only.
NOT_TAKEN = {"key_rotate": (422,)}
SEEING = {"agent", "callbacks", "callback_delivery"}  # who manages an agent sees it, and what is sent for it
SHARED = {"verification"}  # who manages the hub sees one of a log that is no tenant's


@pytest.fixture
def things(populated: Things, bell: Bell) -> Things:
    return populated


@pytest.mark.req("CARD-3", "TOOLS-15")
def test_every_action_on_a_tool_or_agent_asks_who_may_do_it_on_that_one() -> None:
    acting = {route for route in GOVERNED if route.needs in (*ON_TOOL, *ON_AGENT) and route.takes}

    # A tool of another tenant, and a program of the tenant, which is no agent's.
    assert {route.name for route in acting if route.held is None} == {"install", "client_remove"}
    assert {route.name for route in GOVERNED if route.held and route not in acting} == SEEING | SHARED


def thing_at(route: Route, things: Things, person: Person) -> Any:
    return route.held.find(person.by, **{name: things.one(route, name) for name in route.takes})


def answer_to(client: Client, method: str, route: Route, things: Things, person: Person) -> Any:
    """What it answers. Nothing stays of what it did."""
    with transaction.atomic():
        prepare(route.name, things, person.by)
        answer = send(client, method, things.url(route), forms(things)[route.name] if method == "POST" else {})
        answer.content  # noqa: B018  a page is rendered by now
        transaction.set_rollback(True)
    return answer


@pytest.mark.req("TOOLS-15")
def test_who_holds_a_permission_on_one_thing_does_with_it_what_it_names_and_nothing_else(things: Things) -> None:
    owner, pat = things.people["owner"].by, make_person(things.tenant, "pat", Role.DEVELOPER)
    client, before, wrong = pat.client(), rows_of(), {}

    for route, method in EXCEPTIONAL:
        thing = thing_at(route, things, pat)
        for permission in list_object_permissions(thing):
            with transaction.atomic():
                members.give_permission(user_id=pat.user.pk, permission=permission, on=thing, by=owner)
                answer = answer_to(client, method, route, things, pat)
                transaction.set_rollback(True)
            may = permission == route.needs or (route.name in SEEING and permission == "agents.manage")
            if answer.status_code not in (NOT_TAKEN.get(route.name, (200, 302)) if may else (403,)):
                wrong[f"{permission}: {method} {route.name}"] = (answer.status_code, answer.content[-500:])
        if (status := answer_to(client, method, route, things, pat).status_code) != 403:
            wrong[f"nothing: {method} {route.name}"] = status

    assert wrong == {}
    assert rows_of() == before


@pytest.mark.req("TOOLS-15", "TOOLS-22")
def test_whoever_holds_everything_on_one_thing_may_do_nothing_with_another(things: Things) -> None:
    """Of the same tenant, and of a tenant that has the same things by the same names."""
    owner, pat = things.people["owner"].by, make_person(things.tenant, "pat", Role.DEVELOPER)
    twin, spare = make_things("twin"), things.with_(agent_id=things.robot.agent.pk)
    for route, _ in EXCEPTIONAL:
        thing = thing_at(route, things, pat)
        for permission in list_object_permissions(thing):
            with transaction.atomic():
                if permission not in get_user_perms(pat.user, thing):
                    members.give_permission(user_id=pat.user.pk, permission=permission, on=thing, by=owner)
    client, before, wrong = pat.client(), rows_of(), {}

    for route, method in EXCEPTIONAL:
        sent = forms(things)[route.name] if method == "POST" else {}
        for other in (twin, spare):
            if other.url(route) != things.url(route):
                wrong[f"{method} {route.name}"] = send(client, method, other.url(route), sent).status_code

    assert set(wrong.values()) == {403}
    assert {name.partition(" ")[2] for name in wrong} >= {"version_yank", "review_decide", "agent_state", "key_new"}
    assert rows_of() == before
