"""Tenant isolation: does anything of one tenant reach another, at any address?

The addresses come from the URL table; what they name and what is sent to them from ``tests/support/populated_tenant.py`` and
``tests/support/request_bodies.py``.
On SQLite this tries the first wall alone, the filters; on PostgreSQL both (``tests/postgresql`` tries the second alone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access import services as access
from access.members import services as members
from access.roles import HUB_PERMISSIONS, Role
from invocations.saved_views.models import SavedView
from kernel.principal import Principal
from tests.conftest import make_caller, make_person
from tests.support.populated_tenant import ECHO, make_things, send
from tests.support.request_bodies import bodies, forms
from tests.support.routes import api_routes, console_routes, routes
from tests.support.stop_strips import remove_stop_strip
from tests.support.tenant_rows import ids_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things
    from tests.support.routes import Route

pytestmark = pytest.mark.django_db
GOVERNED = [route for route in console_routes() if route.needs]
SCOPED = [route for route in api_routes() if hasattr(route.api_class, "required_scope")]
OBJECTS = [route for route in GOVERNED if route.takes]
API_OBJECTS = [route for route in SCOPED if route.takes]
# What these name belongs to no tenant: a person's own means of signing in, a link that is a secret, a catalogue of the hub.
OF_NO_TENANT = {
    "account_reset_password_from_key", "mfa_remove_webauthn", "mfa_edit_webauthn", "openid_connect_login",
    "openid_connect_callback", "invitation", "api_error", "problem", "global_tile", "sdk_project", "sdk_file",
    # Of one person: tests/integration/access/server_accounts says that nobody else finds them.
    "server_account", "server_account_connect", "server_account_agents", "server_account_end", "server_account_own_callback",
    "oauth_nothing_known", "oauth_nothing_known_of_mcp", "oauth_nothing_known_of_tenant_mcp", "oauth_protected_tenant_mcp",
}  # fmt: skip


@pytest.fixture
def things(bell: Bell) -> Things:
    """Those of the tenant that others must not reach. What `install` names is not shared."""
    return make_things("acme").with_(install__publisher="acme", install__name=ECHO)


def everything_in(slug: str) -> tuple[Person, Caller]:
    """A person with every role who owns the hub as well, and an agent with every scope."""
    tenant = access.create_tenant(slug=slug, name=f"Only {slug}")
    person = make_person(tenant, "sue", *Role)
    system = Principal.system("test", tenant_id=tenant.pk)
    members.make_hub_owner(user=person.user, by=system)
    return person, make_caller(system, "stranger")


@pytest.mark.req("TOOLS-22")
def test_every_address_that_names_something_is_tried() -> None:
    named = {route.name for route in routes() if route.takes}

    assert named == {route.name for route in [*OBJECTS, *API_OBJECTS]} | OF_NO_TENANT


# What is not there.


@pytest.mark.req("TOOLS-22")
def test_nobody_of_another_tenant_finds_anything_in_the_console(things: Things) -> None:
    person, _ = everything_in("elsewhere")
    client, sent, before = person.client(), forms(things), rows_of()

    found = {
        f"{method} {route.name}": send(
            client, method, things.url(route), sent[route.name] if method == "POST" else {}
        ).status_code
        for route in OBJECTS
        for method in route.methods
    }

    assert {action: status for action, status in found.items() if status != 404} == {}
    assert rows_of() == before


@pytest.mark.req("TOOLS-22")
def test_no_agent_of_another_tenant_finds_anything(things: Things) -> None:
    person, stranger = everything_in("elsewhere")
    client, sent, before = person.client(), bodies(things), rows_of(things.tenant)
    found = {}

    for route in API_OBJECTS:
        for method in route.methods:
            data = sent.get(f"{method} {route.name}")
            if route.scope(method) != "-":
                answer = send(Client(), method, things.url(route), data, stranger.headers())
                found[f"{method} {route.name}"] = answer.status_code
            if route.permission(method):
                answer = send(client, method, things.url(route), data, {})
                found[f"{method} {route.name} by a person"] = answer.status_code

    # The stranger's own secret and file, by the same names.
    made = {"PUT api_secret": 201, "DELETE api_secret": 204, "PUT api_file": 201, "DELETE api_file": 204}
    assert {action: status for action, status in found.items() if status != 404} == made
    assert rows_of(things.tenant) == before


# What is there, of two tenants that have the same things by the same names.


@pytest.fixture
def twins(populated_twins: tuple[Things, Things], bell: Bell) -> tuple[Things, Things]:
    return populated_twins


# Who has not revealed a call's values is sent to where that is done; everybody from the start to the page of their role; a view to its
# search.
SENDS_ON = ("artifact", "saved_view", "start")


def pages(things: Things) -> Iterator[tuple[str, str]]:
    """Every page and every answer of a tenant, to its people and agents."""
    person, headers = make_person(things.tenant, f"all-{things.word}", *Role), things.caller.headers()
    client = person.client()
    SavedView.objects.filter(tenant=things.tenant).update(owner=person.by.id)
    for route in GOVERNED:
        if "GET" in route.methods and route.needs != "hub.manage":
            answer = send(client, "GET", things.url(route))
            if route.name in SENDS_ON:
                assert answer.status_code == 302
                continue
            if route.name in (
                "tool_tried",
                "tool_tried_artifact",
                "trial",
            ):  # whoever has not made a try does not see it
                assert answer.status_code == 404
                continue
            # 403: somebody else's draft; 204: a stream, which is only where an event loop serves
            assert answer.status_code == (204 if route.name == "page_events" else 200) or answer.status_code == 403, (
                route.name
            )
            yield route.name, answer.content.decode(errors="replace")
    for route in SCOPED:
        if "GET" in route.methods:
            asks, said = (client, {}) if route.scope("GET") == "-" else (Client(), headers)
            answer = send(asks, "GET", things.url(route), headers=said)
            assert answer.status_code in (200, 202), (route.name, answer.content)  # 202: a call that waits
            yield route.name, answer.content.decode(errors="replace")


# They say nothing that is a tenant's own alone: forms to fill in, what is the same for all, names that the twin has as well.
SAY_NOTHING = {
    "client_new",
    "agent_new", "person_new", "notification_new", "sink_new", "grants_revoke", "consents_revoke", "tool_submit", "installations",
    "shared_tools", "install", "configuration", "api_catalogue", "api_policy_schema", "api_policy_analysis",
    "api_configuration_schema", "api_log_anchor", "api_file", "api_artifact", "api_invocation_events", "artifact", "sandboxes",
    "export_content", "api_export_content", "erasure_new", "retention", "api_retention", "api_publishing",
    "service_levels", "model_providers", "model_new", "model_price_add", "model_prices_new", "api_run_events",
    "connect_client", "connection_rule", "api_connection_rule", "import_document", "import_remote", "import_package",
    "known_sources", "start", "tool_matches",
    "find", "shortcuts", "saved_view", "page_events", "page_event_counts", "api_server_accounts",
    "submission_new", "submissions", "tool_tried", "tool_tried_artifact", "trial",
}  # fmt: skip


@pytest.mark.req("TOOLS-22")
def test_no_page_and_no_answer_shows_anything_of_the_twin(twins: tuple[Things, Things]) -> None:
    mine, theirs = twins
    foreign, own = [[each.tenant.slug, *ids_of(each.tenant)] for each in (theirs, mine)]
    shown, leaked = set(), {}

    for name, text in pages(mine):
        _, _, main = remove_stop_strip(text).partition("<main")
        if any(each in (main or text) for each in own):
            shown.add(name)
        if found := [each for each in foreign if each in text]:
            leaked[name] = found

    assert leaked == {}
    readable = {route.name for route in [*GOVERNED, *SCOPED] if "GET" in route.methods and scope(route) != "hub.manage"}
    assert readable - shown == SAY_NOTHING  # the others show what is one's own: they would show the twin's, too


def scope(route: Route) -> Any:
    return None if route.is_api else route.needs


@pytest.mark.req("TOOLS-22")
def test_a_form_that_names_something_of_the_twin_is_refused(twins: tuple[Things, Things]) -> None:
    mine, theirs = twins
    client = make_person(mine.tenant, "all", *Role).client()
    own, foreign, before = forms(mine), forms(theirs), rows_of()
    governed = [route for route in GOVERNED if route.needs not in HUB_PERMISSIONS]  # owners of the hub name anybody
    asked = [route for route in governed if own.get(route.name) != foreign.get(route.name)]

    found = {route.name: client.post(mine.url(route), foreign[route.name]).status_code for route in asked}

    assert {"grant_new", "grants_revoke", "consents_revoke", "issuer_subject_add", "version_stage"} <= set(found)
    assert {name: status for name, status in found.items() if status not in (404, 422)} == {}
    assert rows_of() == before


def body_of(data: Any) -> Any:
    return data() if callable(data) else data


@pytest.mark.req("TOOLS-22")
def test_a_body_that_names_something_of_the_twin_is_refused(twins: tuple[Things, Things]) -> None:
    mine, theirs = twins
    own, foreign, before = bodies(mine), bodies(theirs), rows_of()
    found = {}

    for route in SCOPED:
        for method in route.methods:
            action = f"{method} {route.name}"
            if method != "GET" and route.scope(method) != "-" and body_of(own[action]) != body_of(foreign[action]):
                answer = send(Client(), method, mine.url(route), foreign[action], mine.robot.headers())
                found[action] = answer.status_code

    named = {"POST api_grants", "POST api_budgets", "POST api_halts", "POST api_version_stage"}
    assert named | {"POST api_issuer_subjects"} <= set(found)
    assert {action: status for action, status in found.items() if status not in (404, 409, 422)} == {}
    assert rows_of() == before
