"""Authorization: how does a program that knows only the hub's address come to act as an agent, and what does it then get?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client

from access.models import Connection, ConnectionToken, Delivery, Notification
from access.roles import AGENT_SCOPES
from evidence.models import Fact
from kernel.database.connections import database_time
from tests.support.connections import REDIRECT, Program, allow, read_answer, read_shown, register, signed_request
from tests.support.tokens import ask

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

HUB = settings.TOOLHUB_PUBLIC_URL
REST = {"resource": HUB}


@pytest.mark.req("CONN-1")
def test_the_metadata_says_what_there_is_and_no_more() -> None:
    found = Client().get("/.well-known/oauth-authorization-server").json()

    assert found["issuer"] == HUB
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["grant_types_supported"] == [
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert found["client_id_metadata_document_supported"] is True
    assert "none" in found["token_endpoint_auth_methods_supported"]
    assert found["registration_endpoint"] == f"{HUB}/oauth/register"
    assert Client().get("/.well-known/openid-configuration").json() == found


@pytest.mark.req("CONN-1")
def test_the_mcp_resource_lists_what_an_agent_needs() -> None:
    found = Client().get("/.well-known/oauth-protected-resource/mcp").json()

    assert found["resource"] == f"{HUB}/mcp"
    assert found["authorization_servers"] == [HUB]
    assert found["scopes_supported"] == list(AGENT_SCOPES)


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/anything",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/token",
        "/authorize",
    ],
)
def test_an_address_that_clients_guess_is_answered_in_json(path: str) -> None:
    for answer in (Client().get(path), Client().post(path, {"grant_type": "x"})):
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.req("CONN-1")
def test_pages_of_others_may_ask_the_protocol_and_never_the_person() -> None:
    asked = {"Origin": "https://inspector.example", "Access-Control-Request-Method": "POST"}

    for path in ("/oauth/token", "/oauth/register", "/oauth/revoke", "/.well-known/oauth-authorization-server"):
        answer = Client().options(path, headers=asked)
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (204, "*"), path
    assert "Access-Control-Allow-Origin" not in Client().options("/oauth/authorize", headers=asked).headers


@pytest.mark.req("CONN-1")
def test_a_program_connects_and_gets_exactly_the_rights_of_the_agent(operator: Person, caller: Caller) -> None:
    program = Program.registered()

    answer = allow(operator.client(), program, caller.agent, asks=REST)
    said = read_answer(answer)
    tokens = program.exchange(said["code"]).json()

    assert (said["state"], said["iss"]) == ("state-1", HUB)
    assert tokens["token_type"] == "Bearer"
    assert tokens["access_token"].startswith("hubo_")
    assert tokens["expires_in"] == 3600
    assert set(tokens["scope"].split()) == set(AGENT_SCOPES)
    assert ask(tokens["access_token"]).status_code == 200
    assert ask(tokens["access_token"], "/api/v1/agents").status_code == 403  # no scope of an agent's


@pytest.mark.req("CONN-1")
def test_what_is_kept_of_tokens_and_codes_is_a_hash(operator: Person, caller: Caller) -> None:
    tokens = Program.registered().connect(operator, caller.agent)

    kept = repr(list(ConnectionToken.objects.values())) + repr(list(Connection.objects.values()))
    assert tokens["access_token"] not in kept
    assert tokens["refresh_token"] not in kept


@pytest.mark.req("CONN-1")
def test_a_token_is_for_the_resource_that_was_asked_for(operator: Person, caller: Caller) -> None:
    for_mcp = Program.registered().connect(operator, caller.agent)["access_token"]

    assert Connection.objects.get().resource == f"{HUB}/mcp"
    assert ask(for_mcp).status_code == 401


@pytest.mark.req("CONN-1")
def test_a_refresh_token_is_good_for_once_and_gives_newer_ones(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)

    second = program.refresh(first["refresh_token"]).json()

    assert second["refresh_token"] != first["refresh_token"]
    assert ask(second["access_token"]).status_code == 200
    assert ask(first["access_token"]).status_code == 401


@pytest.mark.req("CONN-1")
def test_for_this_once_there_is_no_refresh_token(operator: Person, caller: Caller) -> None:
    tokens = Program.registered().connect(operator, caller.agent, once="on")

    assert "refresh_token" not in tokens


@pytest.mark.req("CONN-1")
def test_an_expired_token_is_none(operator: Person, caller: Caller) -> None:
    tokens = Program.registered().connect(operator, caller.agent, asks=REST)
    ConnectionToken.objects.update(expires_at=database_time() - timedelta(seconds=1))

    assert ask(tokens["access_token"]).status_code == 401


@pytest.mark.req("CONN-1")
def test_a_connection_that_has_run_out_is_none(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent, asks=REST)
    past = database_time() - timedelta(days=100)
    Connection.objects.update(opened_at=past, until=past + timedelta(days=1))

    assert ask(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.req("CONN-1")
def test_each_step_is_a_fact_and_no_refresh_is(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent)
    program.refresh(tokens["refresh_token"])

    facts = {
        fact.kind: fact for fact in Fact.objects.filter(subject__in=[Connection.objects.get().wire_id, operator.by.id])
    }

    assert {"client.met", "connection.opened"} <= set(facts)
    said = facts["connection.opened"].content["data"]
    assert said["member"] == operator.by.id
    assert said["redirect_host"] == "client.example"
    assert not [kind for kind in facts if "refresh" in kind]


@pytest.mark.req("CONN-1")
def test_a_person_refuses_and_the_program_is_told_by_whom(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    page = program.open_page(browser)

    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "deny"})

    assert answer.status_code == 303
    said = read_answer(answer)
    assert (said["error"], said["iss"], said["state"]) == ("access_denied", HUB, "state-1")
    assert Fact.objects.filter(kind="connection.refused").count() == 1
    assert not Connection.objects.exists()


@pytest.mark.req("CONN-1")
def test_who_may_not_connect_asks_those_who_listen(tenant: Tenant, developer: Person, caller: Caller) -> None:
    Notification.objects.create(
        tenant=tenant, channel="email", target="owners@example.test", events=["connection.requested"]
    )
    program, browser = Program.registered(), developer.client()
    page = program.open_page(browser)

    refused = allow(browser, program, caller.agent)
    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "ask"})

    assert 'value="ask"' in page.content.decode()
    assert refused.status_code == 422  # the page once more
    assert read_answer(answer)["error"] == "access_denied"
    assert Fact.objects.get(kind="connection.refused").content["data"]["why"] == "asked"
    assert Delivery.objects.get().body == {
        "member": developer.by.name,
        "program": "client.example",
        "url": f"/people/{developer.by.id}",
    }
    assert not Connection.objects.exists()


@pytest.mark.req("CONN-1")
def test_where_nobody_listens_the_page_says_so(developer: Person, caller: Caller) -> None:
    page = Program.registered().open_page(developer.client()).content.decode()

    assert "Nobody is told of it by this hub" in page
    assert 'value="ask"' not in page
    assert 'value="deny"' in page


@pytest.mark.req("CONN-1")
def test_who_is_not_signed_in_signs_in_first_and_comes_back(operator: Person) -> None:
    program = Program.registered()

    answer = Client().get(program.address())

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in?next=/oauth/authorize%3F")


@pytest.mark.req("CONN-1")
def test_prompt_login_asks_to_sign_in_anew(operator: Person) -> None:
    program = Program.registered()

    answer = program.open_page(operator.client(), prompt="login")

    assert answer.status_code == 302
    assert "prompt" not in answer.headers["Location"]


@pytest.mark.req("CONN-1")
def test_scopes_that_an_agent_has_not_are_left_out_and_none_at_all_means_the_usual(
    operator: Person, caller: Caller
) -> None:
    program = Program.registered()

    narrowed = program.connect(operator, caller.agent, asks={"scope": "tools:read agents:manage offline_access"})
    usual = program.connect(operator, caller.agent, asks={"scope": ""})

    assert narrowed["scope"] == "tools:read"
    assert set(usual["scope"].split()) == set(AGENT_SCOPES)


@pytest.mark.req("CONN-1")
def test_the_page_may_lead_on_to_where_the_answer_goes(operator: Person, caller: Caller) -> None:
    local = Program.registered(redirect_uris=["http://localhost:8787/callback"])

    policy = local.open_page(operator.client()).headers["Content-Security-Policy"]

    assert "form-action 'self' http://localhost:8787" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.req("CONN-1")
def test_a_second_tab_does_not_change_what_the_first_asked(operator: Person, caller: Caller) -> None:
    one, other, browser = (
        Program.registered(client_name="one"),
        Program.registered(client_name="other"),
        operator.client(),
    )
    first = one.open_page(browser)
    other.open_page(browser)

    form = {"agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1", "decision": "allow"}
    browser.post("/oauth/authorize", {"request": signed_request(first), "shown": read_shown(first)} | form)

    assert Connection.objects.get().client_id == one.client_id


@pytest.mark.req("CONN-1")
def test_where_the_hub_does_not_take_registrations_the_metadata_says_so(settings: object) -> None:
    settings.TOOLHUB_CLIENT_REGISTRATION = False  # type: ignore[attr-defined]

    assert "registration_endpoint" not in Client().get("/.well-known/oauth-authorization-server").json()
    assert register().status_code == 404


@pytest.mark.req("CONN-1")
def test_where_the_hub_reads_no_documents_the_metadata_do_not_offer_it(settings: Any, operator: Person) -> None:
    assert settings.OAUTH2_PROVIDER["CIMD_ENABLED"] is settings.TOOLHUB_CLIENT_DOCUMENTS
    settings.TOOLHUB_CLIENT_DOCUMENTS = False
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"CIMD_ENABLED": False}

    told = Client().get("/.well-known/oauth-authorization-server").json()
    page = Program("https://claude.ai/oauth/client", "https://claude.ai/cb").open_page(operator.client())

    assert told["client_id_metadata_document_supported"] is False
    assert told["registration_endpoint"] == f"{HUB}/oauth/register"
    assert page.status_code == 400


@pytest.mark.req("CONN-1")
def test_a_client_with_a_secret_shows_it(operator: Person, caller: Caller) -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()
    program = Program(made["client_id"])
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]

    without = program.exchange(code)
    wrong = program.exchange(code, client_secret="x")
    right = program.exchange(code, client_secret=made["client_secret"])

    assert (without.status_code, wrong.status_code, right.status_code) == (401, 401, 200)
    assert made["redirect_uris"] == [REDIRECT]
