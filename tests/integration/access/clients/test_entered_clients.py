"""Entered clients: what is a program good for that somebody of a tenant has entered by hand, and to whom is it known?"""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client

from access import services as access
from access.clients.services import enter_client, remove_client
from access.connections.services import open_connection
from access.models import Connection, EnteredClient
from access.oauth.clients import Application, describe_client, remove_unused_clients
from access.roles import Role
from evidence.models import Fact
from kernel.database.connections import database_time
from kernel.principal import Principal
from kernel.problems import Conflict
from tests.conftest import make_caller, make_person
from tests.support.connections import MCP, REDIRECT, Program, allow, read_answer, signed_request
from tests.support.tokens import ask

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

REST = {"resource": settings.TOOLHUB_PUBLIC_URL}
UNKNOWN = "The program that sent you here is not known"


def enter(
    by: Principal, *, name: str = "Travel desk", confidential: bool = False
) -> tuple[Program, str, EnteredClient]:
    entered, secret = enter_client(name=name, redirect_uris=[REDIRECT], confidential=confidential, by=by)
    return Program(entered.client_id), secret, entered


def read_page(page: Any) -> str:
    """What stands there, without what differs each time and without the address that was asked for."""
    differs = r'(nonce|value|content)="[^"]+"|req_\w+|[0-9a-f-]{36}|client_id=\w+'
    return re.sub(differs, "", page.content.decode())


@pytest.mark.req("CONN-1")
def test_a_program_with_a_secret_is_entered_in_the_console_and_connects(operator: Person, caller: Caller) -> None:
    form = {"name": "Travel  desk", "redirect_uris": f"{REDIRECT}\nhttps://other.example/cb\n", "confidential": "on"}

    shown = operator.client().post("/connections/clients/new", form)

    made, secret = shown.context["client"], shown.context["secret"]
    assert shown.status_code == 200
    assert made.client_id in shown.content.decode()
    assert secret in shown.content.decode()
    assert (made.name, made.redirect_uris) == ("Travel desk", [REDIRECT, "https://other.example/cb"])
    program = Program(made.client_id)
    code = read_answer(allow(operator.client(), program, caller.agent, asks=REST))["code"]
    assert program.exchange(code).status_code == 401
    assert program.exchange(code, client_secret="x").status_code == 401
    tokens = program.exchange(code, client_secret=secret).json()
    assert ask(tokens["access_token"]).status_code == 200
    assert program.refresh(tokens["refresh_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"], client_secret=secret).status_code == 200
    assert secret not in repr(list(Application.objects.values()))
    assert secret not in operator.client().get("/connections/clients").content.decode()


@pytest.mark.req("CONN-1")
def test_a_program_with_a_secret_may_show_it_in_the_header(operator: Person, caller: Caller) -> None:
    program, secret, _ = enter(operator.by, confidential=True)
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]
    basic = base64.b64encode(f"{program.client_id}:{secret}".encode()).decode()
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": "v" * 64, "redirect_uri": REDIRECT}

    answer = Client().post("/oauth/token", form, headers={"Authorization": f"Basic {basic}"})

    assert answer.status_code == 200


@pytest.mark.req("CONN-1")
def test_a_program_without_a_secret_connects_where_the_hub_takes_no_registrations(
    operator: Person, caller: Caller, settings: Any
) -> None:
    settings.TOOLHUB_CLIENT_REGISTRATION = False
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"CIMD_ENABLED": False}
    body = {"name": "Notebook", "redirect_uris": ["http://127.0.0.1/callback"]}

    made = caller.post("/clients", body)
    told = made.json()["data"]
    program = Program(told["client_id"], "http://127.0.0.1:53682/callback")
    tokens = program.connect(operator, caller.agent, asks=REST)
    (listed,) = caller.get("/clients").json()["data"]["clients"]

    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    assert (told["client_secret"], told["confidential"], told["entered_by"]) == (None, False, caller.agent.wire_id)
    assert ask(tokens["access_token"]).status_code == 200
    assert listed == {name: each for name, each in told.items() if name != "client_secret"} | {"connections": 1}


@pytest.mark.req("CONN-1")
def test_the_page_says_who_has_entered_it_and_each_step_is_a_fact(operator: Person, caller: Caller) -> None:
    program, _, entered = enter(operator.by)

    page = program.open_page(operator.client()).content.decode()
    program.connect(operator, caller.agent)
    connection = Connection.objects.get()

    assert "<bdi>Travel desk</bdi> asks to act as an agent" in page
    assert "Entered by your organisation" in page
    assert operator.by.name in page
    assert "nverified" not in page
    assert (connection.client_kind, connection.known_as) == ("entered", "Travel desk")
    assert Fact.objects.get(kind="client.met").content["data"]["how"] == "entered"
    fact = Fact.objects.get(kind="client.entered")
    assert (fact.subject, fact.actor_id) == (entered.wire_id, operator.by.id)
    assert fact.content["data"] == {
        "client": program.client_id,
        "name": "Travel desk",
        "redirect_uris": [REDIRECT],
        "confidential": False,
    }
    listed = operator.client().get("/connections").content.decode()
    assert "entered by your organisation" in listed
    assert "unverified" not in listed


# Whose it is.


@pytest.mark.req("CONN-1", "TOOLS-22")
@pytest.mark.parametrize("said", [{}, {"redirect_uri": "https://elsewhere.example/"}, {"code_challenge": "x"}])
def test_to_another_tenant_it_is_as_one_that_nobody_knows(
    operator: Person, stranger: Person, said: dict[str, str]
) -> None:
    program, _, _ = enter(operator.by)

    page = program.open_page(stranger.client(), **said)
    unknown = Program("nobody").open_page(stranger.client(), **said)

    assert page.status_code == unknown.status_code == 400
    assert UNKNOWN in page.content.decode()
    assert read_page(page) == read_page(unknown)


@pytest.mark.req("CONN-1", "TOOLS-22")
def test_who_is_of_both_tenants_goes_to_the_one_that_knows_it_first(
    tenant: Tenant, foreign_tenant: Tenant, caller: Caller
) -> None:
    both = make_person(foreign_tenant, "bea", Role.OPERATOR)  # who begins in the tenant that they joined first
    access.give_membership(
        tenant=tenant, user=both.user, role=Role.OPERATOR, by=Principal.system("test", tenant_id=tenant.pk)
    )
    make_caller(both.by, "theirs")
    program, _, _ = enter(Principal.system("test", tenant_id=tenant.pk))
    browser = both.client()

    page = program.open_page(browser)
    signed = {"request": signed_request(page)}
    refused = browser.post("/oauth/authorize", signed | {"decision": "deny"})
    switched = browser.post("/oauth/authorize", signed | {"decision": "tenant", "tenant": tenant.wire_id})
    allowed = allow(browser, program, caller.agent)

    assert page.context["elsewhere"] == tenant
    assert page.context["agents"] == []
    assert "Only Acme knows this program" in page.content.decode()
    assert (refused.status_code, Fact.objects.filter(kind="connection.refused").exists()) == (200, False)
    assert switched.headers["Location"] == program.address()
    assert allowed.status_code == 303
    assert Connection.objects.get().tenant == tenant


@pytest.mark.req("TOOLS-22")
def test_no_connection_of_another_tenant_is_opened_for_it(operator: Person, stranger: Person) -> None:
    program, _, entered = enter(operator.by)
    theirs = make_caller(stranger.by, "theirs")
    client = describe_client(Application.objects.get(client_id=program.client_id), entered)

    with pytest.raises(Conflict, match="not known here"):
        open_connection(
            agent_id=theirs.agent.pk,
            member=stranger.user,
            client=client,
            redirect_host="client.example",
            resource=MCP,
            scopes=["tools:read"],
            tools=None,
            refreshable=True,
            days=1,
            code_digest="c",
            form_digest="f",
            by=stranger.by,
        )


@pytest.mark.req("CONN-1")
def test_a_row_that_no_tenant_has_entered_is_known_to_nobody(operator: Person) -> None:
    Application.objects.create(
        client_id="made-in-a-shell",
        redirect_uris=REDIRECT,
        client_type="public",
        authorization_grant_type="authorization-code",
        registration_source="manual",
    )

    page = Program("made-in-a-shell").open_page(operator.client())

    assert page.status_code == 400
    assert UNKNOWN in page.content.decode()


# How it ends.


@pytest.mark.req("CONN-1")
def test_removing_it_ends_its_connections_and_what_it_has_is_worth_nothing(operator: Person, caller: Caller) -> None:
    program, _, entered = enter(operator.by)
    other, _, _ = enter(operator.by, name="Other")
    other.connect(operator, caller.agent)
    tokens = program.connect(operator, caller.agent, asks=REST)
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]
    waiting = program.open_page(operator.client())
    away = f"/connections/clients/{entered.wire_id}/remove"

    without_reason = operator.client().post(away, {"reason": ""})
    answer = operator.client().post(away, {"reason": "The contract ended."})

    assert (without_reason.status_code, answer.status_code) == (422, 302)
    assert "Remove this program?" in without_reason.content.decode()
    assert ask(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_client"
    assert program.exchange(code).json()["error"] == "invalid_client"
    assert program.open_page(operator.client()).status_code == 400
    sent = {"request": signed_request(waiting), "decision": "deny"}
    assert operator.client().post("/oauth/authorize", sent).status_code == 400
    ended = Connection.objects.filter(client_id=program.client_id)
    assert {(each.end_reason, each.ended_by) for each in ended} == {("removed", operator.by.id)}
    assert Connection.objects.get(client_id=other.client_id).ended_at is None
    said = Fact.objects.get(kind="client.removed").content["data"]
    assert (said["client"], said["connections"]) == (program.client_id, 2)
    assert Fact.objects.filter(kind="connection.ended").count() == 2


@pytest.mark.req("TOOLS-22")
def test_nobody_of_another_tenant_removes_it(operator: Person, stranger: Person) -> None:
    _, _, entered = enter(operator.by)

    with pytest.raises(EnteredClient.DoesNotExist):
        remove_client(client_id=entered.pk, reason="x", by=stranger.by)


@pytest.mark.req("CONN-1")
def test_one_that_nobody_has_let_in_yet_stays(operator: Person) -> None:
    program, _, _ = enter(operator.by)
    Application.objects.update(
        created=database_time() - timedelta(days=900), updated=database_time() - timedelta(days=900)
    )

    remove_unused_clients()

    assert Application.objects.filter(client_id=program.client_id).exists()


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 61}, "/name"),
        ({"name": "“claude.ai”"}, "/name"),
        ({"name": "a\u202eb"}, "/name"),
        ({"name": "\u0441laude.ai"}, "/name"),  # a Cyrillic letter for the first
        ({"redirect_uris": []}, "/redirect_uris"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "/redirect_uris"),
        ({"redirect_uris": [REDIRECT, "http://client.example/callback"]}, "/redirect_uris"),
        ({"redirect_uris": [f"https://a.example/{n}" for n in range(11)]}, "/redirect_uris"),
    ],
)
def test_what_cannot_be_entered_is_refused_where_it_stands(
    caller: Caller, changes: dict[str, Any], pointer: str
) -> None:
    answer = caller.post("/clients", {"name": "x", "redirect_uris": [REDIRECT]} | changes)

    (finding,) = answer.json()["error"]["details"]["findings"]
    assert (answer.status_code, finding["pointer"]) == (422, pointer)
    assert not Application.objects.exists()


@pytest.mark.req("CONN-1")
def test_a_tenant_has_no_end_of_them_and_others_have_their_own(
    operator: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("access.clients.services.MAX_CLIENTS", 1)
    *_, first = enter(operator.by)

    with pytest.raises(Conflict, match="has 1 programs"):
        enter(operator.by, name="Another")

    enter(stranger.by)
    remove_client(client_id=first.pk, reason="for a test", by=operator.by)
    enter(operator.by, name="Another")
