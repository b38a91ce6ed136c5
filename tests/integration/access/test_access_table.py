"""The access table: is every role allowed exactly what the table says, and every key what its scopes say? Each cell is a request.

The table is ``ACCESS`` of the ``urls`` modules beside the pages and endpoints (toolhub/access_tables.py). A new address fails here
until it has something to send it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.test import Client

from access import services as access
from access.members import services as members
from access.models import TrustedIssuer
from access.roles import HUB_PERMISSIONS, PERMISSIONS, SCOPES, Role
from invocations.model_calls import tenant_providers
from kernel.principal import Principal
from tests.conftest import make_person
from tests.support.connected_models import SCRIPTED
from tests.support.identity_assertions import sign_in_with
from tests.support.import_sources import list_server
from tests.support.populated_tenant import send
from tests.support.request_bodies import bodies, forms
from tests.support.request_preparations import prepare
from tests.support.routes import api_routes, console_routes
from tests.support.scripted_models import ScriptedProvider
from tests.support.tenant_rows import rows_of
from toolhub import access_tables
from toolhub.access_tables import HUB_OWNER, list_access_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person
    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things
    from tests.support.routes import Route

pytestmark = pytest.mark.django_db
LETTERS = {HUB_OWNER: "owner of the hub", **{letter: str(role) for letter, role in access_tables.LETTERS.items()}}


ROWS = list_access_rows()
CONSOLE = {(row.method, row.route): (row.needed, row.roles) for row in ROWS if row.section == access_tables.CONSOLE}
API = {(row.method, row.route): row.needed for row in ROWS if row.section == access_tables.API}
PEOPLE = {(row.method, row.route): (row.needed, row.roles) for row in ROWS if row.section == access_tables.PEOPLE}
GOVERNED = [route for route in console_routes() if route.needs]
SCOPED = [route for route in api_routes() if hasattr(route.api_class, "required_scope")]
# Kept by the agent that made them, or made for it; everything else an agent does for others, and not for itself.
ITS_OWN = ("tools", "invocations", "chains", "runs", "artifacts", "evidence", "consents", "delegations")
# What takes two scopes, and which is the other one.
TAKES_ALSO = {"POST api_runs": "models:call", "POST api_issuer_rule_set": "tools:read"}

A_PART = {"HTTP_HX_REQUEST": "true"}  # of a page: a refusal is then drawn without menu and frame


def actions(routes: list[Route]) -> Iterator[tuple[Route, str]]:
    return ((route, method) for route in routes for method in route.methods)


def by_session() -> list[tuple[Route, str]]:
    return [(route, method) for route, method in actions(SCOPED) if route.permission(method)]


class WillingProvider(ScriptedProvider):
    """Has models of all names."""

    def _check_name(self, name: str) -> None: ...


@pytest.fixture
def things(populated: Things, bell: Bell, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Things:
    monkeypatch.setitem(tenant_providers.KINDS, SCRIPTED, WillingProvider)
    for module in ("services", "next_versions"):  # nobody is there
        monkeypatch.setattr(f"registry.imports.{module}.fetch_remote_list", lambda *_: list_server("Looks around."))
    settings.SOCIALACCOUNT_PROVIDERS = sign_in_with(TrustedIssuer.objects.get(tenant=populated.tenant).issuer)
    return populated


def test_every_action_has_a_line_in_the_table() -> None:
    assert {(method, route.name): route.needs for route, method in actions(GOVERNED)} == {
        action: permission for action, (permission, _) in CONSOLE.items()
    }
    assert {(method, route.name): route.scope(method) for route, method in actions(SCOPED)} == API
    assert {(method, route.name): route.permission(method) for route, method in by_session()} == {
        action: permission for action, (permission, _) in PEOPLE.items()
    }
    assert len(ROWS) == len(CONSOLE) + len(API) + len(PEOPLE)


def test_every_line_says_for_every_role_whether_it_may() -> None:
    for permission, cells in [*CONSOLE.values(), *PEOPLE.values()]:
        assert len(cells) == len(LETTERS), cells
        assert all(cell in (letter, "-") for cell, letter in zip(cells, LETTERS, strict=True)), cells
        assert set(cells) != {"-"}, permission  # what nobody may do is no action


def test_one_permission_says_the_same_in_every_line() -> None:
    said: dict[str, set[str]] = {}
    for permission, cells in [*CONSOLE.values(), *PEOPLE.values()]:
        said.setdefault(permission, set()).add(cells)

    assert {permission: cells for permission, cells in said.items() if len(cells) > 1} == {}
    assert set(said) == {*PERMISSIONS, *HUB_PERMISSIONS}


def person_as(letter: str, things: Things) -> Person:
    if letter != "H":
        return make_person(things.tenant, "pat", Role(LETTERS[letter]))
    person = make_person(things.tenant, "pat", Role.OWNER)
    members.make_hub_owner(user=person.user, by=Principal.system("test", tenant_id=things.tenant.pk))
    return person


def answer_to(client: Client, method: str, route: Route, things: Things, by: Principal, **more: Any) -> Any:
    """What it answers. Nothing stays of what it did."""
    with transaction.atomic():
        prepare(route.name, things, by)
        answer = send(client, method, things.url(route), **more)
        answer.content  # noqa: B018  a page is rendered by now
        transaction.set_rollback(True)
    return answer


@contextmanager
def one_person(letter: str, things: Things) -> Iterator[Person]:
    """Somebody of that role. What is there to look at is made once for all roles, which takes longer than what some of them may do."""
    with transaction.atomic():
        yield person_as(letter, things)
        transaction.set_rollback(True)


@pytest.mark.req("CARD-3", "CARD-6", "TOOLS-29")
def test_a_role_does_nothing_but_what_the_table_says(things: Things) -> None:
    """What is allowed is done by the role that may do the fewest things of those that may do it."""
    lines = Counter(letter for _, cells in CONSOLE.values() for letter in cells)
    by_least = {action: min(set(cells) - {"-"}, key=lambda each: lines[each]) for action, (_, cells) in CONSOLE.items()}
    wrong: dict[str, Any] = {}

    for letter in LETTERS:
        done = {action for action, least in by_least.items() if least == letter}
        with one_person(letter, things) as person:
            wrong |= {f"{letter}: {action}": told for action, told in _use_console(letter, done, person, things)}

    assert wrong == {}


@pytest.mark.long
@pytest.mark.req("CARD-3", "CARD-6", "TOOLS-29")
def test_a_role_does_all_that_the_table_says(things: Things) -> None:
    wrong: dict[str, Any] = {}

    for letter in LETTERS:
        done = {action for action, (_, cells) in CONSOLE.items() if letter in cells}
        with one_person(letter, things) as person:
            wrong |= {f"{letter}: {action}": told for action, told in _use_console(letter, done, person, things)}

    assert wrong == {}


def _use_console(letter: str, done: set[tuple[str, str]], person: Person, things: Things) -> Iterator[tuple[str, Any]]:
    """What went otherwise than the table says, of what is ``done`` and of all that is refused."""
    client, sent = person.client(), forms(things)
    for route, method in actions(GOVERNED):
        if (method, route.name) in done:
            data = sent[route.name] if method == "POST" else {}
            answer = answer_to(client, method, route, things, person.by, data=data)
            if answer.status_code not in (200, 204, 302) or answer.headers.get("Location", "").startswith("/sign-in"):
                yield f"{method} {route.name}", (answer.status_code, errors_of(answer))
    before = rows_of()
    client.defaults |= A_PART
    for route, method in actions(GOVERNED):
        if letter not in CONSOLE[method, route.name][1]:
            answer = send(client, method, things.url(route), sent[route.name] if method == "POST" else {})
            if answer.status_code != 403:
                yield f"{method} {route.name}", answer.status_code
    if rows_of() != before:
        yield "what was refused", "left or took rows"


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_a_role_does_by_session_what_the_table_says_and_nothing_else(things: Things) -> None:
    wrong: dict[str, Any] = {}

    for letter in LETTERS:
        with one_person(letter, things) as person:
            wrong |= {f"{letter}: {action}": told for action, told in _use_api(letter, person, things)}

    assert wrong == {}


def _use_api(letter: str, person: Person, things: Things) -> Iterator[tuple[str, Any]]:
    client, sent, before = person.client(), bodies(things), rows_of()
    for route, method in by_session():
        data = sent.get(f"{method} {route.name}")
        answer = answer_to(client, method, route, things, person.by, data=data, headers={})
        may = letter in PEOPLE[method, route.name][1]
        if (answer.status_code >= 300) if may else (answer.status_code != 403):
            yield f"{method} {route.name}", (answer.status_code, answer.content[:500])
    if rows_of() != before:
        yield "what was sent", "left or took rows"


def errors_of(answer: Any) -> Any:
    """Why a form was not taken, for who reads the failure."""
    context: Any = answer.context or []
    scopes = [each.flatten() for each in (context if isinstance(context, list) else [context])]
    found = [value.errors for scope in scopes for value in scope.values() if hasattr(value, "errors")]
    return [each for each in found if each] or answer.content[-500:]


def is_refused(answer: Any, scope: str) -> bool:
    """For want of the scope. In the formats of others the hub's details stand beside the error."""
    body = answer.json()
    return bool(answer.status_code == 403 and body.get("hub", body["error"])["details"] == {"missing": scope})


@pytest.mark.req("TOOLS-15", "TOOLS-29")
def test_a_key_does_what_its_scope_says_and_nothing_else(things: Things) -> None:
    sent = bodies(things)
    by = things.people["owner"].by
    keys = {
        (agent, scope, kind): access.create_key(agent=agent, scopes=scopes, by=by)[1]
        for agent in (things.caller.agent, things.robot.agent)
        for scope in SCOPES
        for kind, scopes in {"only": [scope], "all but": [each for each in SCOPES if each != scope]}.items()
    }
    before, wrong = rows_of(), {}

    for route, method in actions(SCOPED):
        scope = API[method, route.name]
        if scope == "-":
            continue
        who = things.caller if route.area in ITS_OWN or route.name.startswith("api_grant_request") else things.robot
        for kind in ("only", "all but"):
            key = keys[who.agent, scope, kind]
            if kind == "only" and (also := TAKES_ALSO.get(f"{method} {route.name}")):
                key = access.create_key(agent=who.agent, scopes=[scope, also], by=by)[1]
                before = rows_of()
            headers = {"Authorization": f"Bearer {key}"}
            data = None if method == "GET" else sent[f"{method} {route.name}"]
            answer = answer_to(Client(), method, route, things, who.by, data=data, headers=headers)
            good = answer.status_code < 300 if kind == "only" else is_refused(answer, scope)
            if not good:
                wrong[f"{kind} {scope}: {method} {route.name}"] = (answer.status_code, answer.content[:500])

    assert wrong == {}
    assert rows_of() == before


@pytest.mark.req("TOOLS-15", "TOOLS-22")
def test_no_key_does_what_is_for_people_whatever_it_carries_and_whoever_is_signed_in_beside_it(things: Things) -> None:
    signed_in, sent, before = things.people["owner"].client(), bodies(things), rows_of()
    only = [(route, method) for route, method in actions(SCOPED) if API[method, route.name] == "-"]

    found = {
        f"{method} {route.name}": send(
            client, method, things.url(route), sent.get(f"{method} {route.name}"), things.robot.headers()
        ).status_code
        for route, method in only
        for client in (Client(), signed_in)
    }

    assert only
    assert set(found.values()) == {403}
    assert rows_of() == before


def test_everything_that_is_sent_is_sent_somewhere() -> None:
    """An action that is gone leaves nothing behind in the tests."""
    posts = {route.name for route, method in actions(GOVERNED) if method == "POST"}
    writes = {f"{method} {route.name}" for route, method in actions(SCOPED) if method != "GET"}
    nothing: Any = _Anything()

    assert set(forms(nothing)) == posts
    assert set(bodies(nothing)) == writes


class _Anything:
    """Has every attribute and every item."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __getitem__(self, key: str) -> Any:
        return self
