"""Attacks on connections: does each way to attack an authorization server, or to harm people by it, end where it should?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from django.conf import settings as configured
from django.test import Client
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from access.authentication.bearer import resolve_principal
from access.connections import services
from access.models import Connection, ConnectionToken
from access.oauth.clients import clean_name
from evidence.models import Fact
from kernel.database.connections import database_time
from tests.conftest import make_caller
from tests.support.connections import REDIRECT, Program, allow, read_answer, signed_request
from tests.support.tokens import ask

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
HUB = configured.TOOLHUB_PUBLIC_URL
REST = {"resource": HUB}


def later(seconds: int = 60) -> None:
    """As if what happened had happened so long ago."""
    past = database_time() - timedelta(seconds=seconds)
    Connection.objects.filter(redeemed_at__isnull=False).update(redeemed_at=past)
    ConnectionToken.objects.filter(used_at__isnull=False).update(used_at=past)


# What goes back to the program.


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "wrong",
    [
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge": "x" * 200},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"response_type": "token"},
        {"resource": "https://elsewhere.example/mcp"},
        {"scope": "admin everything"},
        {"response_mode": "fragment"},
        {"prompt": "none"},
    ],
)
def test_each_refusal_that_goes_back_says_by_whom_it_is(
    wrong: dict[str, Any], operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    program.connect(operator, caller.agent)

    answer = program.open_page(operator.client(), **wrong)

    said = read_answer(answer)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(REDIRECT)
    assert said["error"]
    assert (said["iss"], said["state"]) == (HUB, "state-1")
    assert "" not in said.values()


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "wrong", [{"code_challenge": None}, {"response_type": "none"}, {"scope": "admin everything"}, {"prompt": "none"}]
)
def test_who_has_not_let_a_program_in_is_not_sent_to_it_by_its_mistake(wrong: dict[str, Any], operator: Person) -> None:
    answer = Program.registered().open_page(operator.client(), **wrong)

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("state", ["{a}", "[1]|^", "%7Ba%7D", "%C3%A4"])
def test_a_state_comes_back_as_it_was_given(state: str, operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    page = browser.get(f"{program.address(state=None)}&state={state}")

    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "deny"})

    assert page.status_code == 200
    assert read_answer(answer)["state"] == unquote(state)


@pytest.mark.req("CONN-1")
def test_a_resource_without_a_text_names_none(operator: Person, caller: Caller) -> None:
    Program.registered().connect(operator, caller.agent, asks={"resource": ""})

    assert Connection.objects.get().resource == f"{HUB}/mcp"


@pytest.mark.req("CONN-1")
def test_what_clients_ask_for_everywhere_is_not_refused_when_it_is_asked_for_alone(
    operator: Person, caller: Caller
) -> None:
    tokens = Program.registered().connect(operator, caller.agent, asks={"scope": "offline_access"})

    assert "tools:read" in tokens["scope"].split()


@pytest.mark.req("CONN-1")
def test_a_program_with_several_addresses_says_which_it_means(operator: Person) -> None:
    one = Program.registered()
    several = Program.registered(redirect_uris=[REDIRECT, REDIRECT + "/2"])

    assert one.open_page(operator.client(), redirect_uri=None).status_code == 200
    assert several.open_page(operator.client(), redirect_uri=None).status_code == 400


# Resources.


@pytest.mark.req("CONN-1")
def test_a_foreign_resource_is_refused_when_it_is_asked_for_and_at_each_token(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]

    foreign = program.exchange(code, resource="https://elsewhere.example/mcp")
    wider = program.exchange(code, resource=HUB)
    tokens = program.exchange(
        code, resource=f"{HUB}/mcp".upper().replace("HTTP:", "http:").replace("/MCP", "/mcp")
    ).json()
    refreshed = program.refresh(tokens["refresh_token"], resource="https://elsewhere.example/mcp")

    assert foreign.json()["error"] == wider.json()["error"] == "invalid_target"
    assert refreshed.json()["error"] == "invalid_target"
    assert program.refresh(tokens["refresh_token"]).status_code == 200  # who leaves it out means the same


@pytest.mark.req("CONN-1")
def test_who_names_no_resource_gets_no_token_for_everything(operator: Person, caller: Caller) -> None:
    tokens = Program.registered().connect(operator, caller.agent)

    assert Connection.objects.get().resource == f"{HUB}/mcp"
    assert ask(tokens["access_token"]).status_code == 401


# Codes.


@pytest.mark.req("CONN-1")
def test_a_code_that_is_shown_again_ends_what_it_opened(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent, asks=REST))["code"]
    tokens = program.exchange(code).json()
    later()

    again = program.exchange(code)

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert ask(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert Fact.objects.get(kind="connection.reuse_detected").content["data"]["what"] == "code"
    assert Connection.objects.get().end_reason == "reuse"


@pytest.mark.req("CONN-1")
def test_a_code_is_worth_nothing_without_its_verifier_its_client_and_its_address(
    operator: Person, caller: Caller
) -> None:
    program, other = Program.registered(), Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]

    for answer in (
        program.exchange(code, code_verifier="w" * 64),
        program.exchange(code, code_verifier=""),
        program.exchange(code, redirect_uri="https://client.example/other"),
        other.exchange(code),
    ):
        assert answer.status_code in (400, 401), answer.content
        assert "access_token" not in answer.json()
    assert program.exchange(code).status_code == 200


@pytest.mark.req("CONN-1")
def test_a_code_is_good_for_a_minute(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]
    Grant.objects.update(expires=database_time() - timedelta(seconds=1))

    assert program.exchange(code).json()["error"] == "invalid_grant"


# Refresh tokens.


@pytest.mark.req("CONN-1")
def test_a_refresh_token_that_is_shown_again_ends_the_connection(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()
    later()

    again = program.refresh(first["refresh_token"])

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert ask(second["access_token"]).status_code == 401
    assert program.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert Fact.objects.get(kind="connection.reuse_detected").content["data"]["what"] == "refresh_token"


@pytest.mark.req("CONN-1")
def test_two_windows_of_one_program_that_refresh_at_once_end_nothing(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()

    loser = program.refresh(first["refresh_token"])

    assert loser.json()["error"] == "invalid_grant"
    assert ask(second["access_token"]).status_code == 200
    assert not Fact.objects.filter(kind="connection.reuse_detected").exists()


@pytest.mark.req("CONN-1")
def test_from_elsewhere_it_is_no_second_window(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()

    Client().post(
        "/oauth/token",
        {"grant_type": "refresh_token", "refresh_token": first["refresh_token"], "client_id": program.client_id},
        REMOTE_ADDR="203.0.113.9",
    )

    assert ask(second["access_token"]).status_code == 401


@pytest.mark.req("CONN-1")
def test_a_refresh_token_is_its_clients_only(operator: Person, caller: Caller) -> None:
    program, other = Program.registered(), Program.registered()
    tokens = program.connect(operator, caller.agent)

    assert other.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    gone = Client().post("/oauth/revoke", {"client_id": other.client_id, "token": tokens["refresh_token"]})
    assert gone.status_code == 200  # which says nothing
    assert program.refresh(tokens["refresh_token"]).status_code == 200


# What people read.


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\u202egnp.exe\u202c Claude", "gnp.exe Claude"),
        ("Claude\n\n\nVerified by toolhub", "Claude Verified by toolhub"),
        ("a" * 200, "a" * 60),
        ("\u200b\u2066x\u2069", "x"),
        ("Claude”. Checked by your company. “", "Claude. Checked by your company."),
        ('«A» "B" 「C」', "A B C"),
        ("\u3164\uffa0\u115f\u2800", ""),
        ("Anna's", "Anna's"),
        ("  many   blanks ", "many blanks"),
        (None, ""),
        (["x"], ""),
    ],
)
def test_a_name_is_shown_as_what_it_is(said: Any, shown: str) -> None:
    assert clean_name(said) == shown


@pytest.mark.req("CONN-1")
def test_the_page_says_first_that_nobody_vouches(operator: Person, caller: Caller) -> None:
    page = Program.registered(client_name="<b>Claude</b>").open_page(operator.client()).content.decode()

    assert "An unverified program asks to act as an agent" in page
    assert "<b>Claude</b>" not in page
    assert "client.example" in page


# The form.


@pytest.mark.req("CONN-1")
def test_a_form_cannot_say_more_than_was_asked_for(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    asked = {"scope": "tools:read"}

    wider = allow(browser, program, caller.agent, asks=asked, scopes=["tools:read", "invocations:create"])
    tools = allow(browser, program, caller.agent, asks=asked, reach="these", tools=["somebody.elses.tool"])
    longer = allow(browser, program, caller.agent, asks=asked, days="9999")
    foreign = allow(
        browser, program, caller.agent, asks=asked, resource=HUB, redirect_uri="https://evil.test/", client_id="x"
    )

    assert (wider.status_code, tools.status_code, longer.status_code) == (422, 422, 422)
    assert foreign.headers["Location"].startswith(REDIRECT)
    opened = Connection.objects.get()
    assert (opened.scopes, opened.resource) == (["tools:read"], f"{HUB}/mcp")


@pytest.mark.req("CONN-1")
def test_a_request_is_of_one_person_and_one_session(operator: Person, second_operator: Person, caller: Caller) -> None:
    program = Program.registered()
    signed = signed_request(program.open_page(operator.client()))
    form = {"request": signed, "agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1"}

    for browser in (second_operator.client(), operator.client()):  # another person; the same, signed in anew
        assert browser.post("/oauth/authorize", form | {"decision": "allow"}).status_code == 400
    assert operator.client().post("/oauth/authorize", form | {"request": signed + "x"}).status_code == 400
    assert not Connection.objects.exists()


@pytest.mark.req("CONN-1")
def test_another_page_cannot_send_the_form(operator: Person, caller: Caller) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(operator.user)
    page = Program.registered().open_page(browser)

    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "allow"})

    assert answer.status_code == 403


@pytest.mark.req("CONN-1")
def test_a_program_that_says_something_else_by_now_is_not_let_in(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    signed = signed_request(program.open_page(browser))
    Application.objects.update(name="Another")

    form = {"request": signed, "agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1"}
    answer = browser.post("/oauth/authorize", form | {"decision": "allow"})

    assert answer.status_code == 400
    assert not Connection.objects.exists()


# Tokens for keys.


@pytest.mark.req("CONN-1")
def test_a_key_gets_what_it_carries_of_what_is_asked_for(operator: Person) -> None:
    reader = make_caller(operator.by, "reader", scopes=("tools:read",))
    form = {"grant_type": "client_credentials", "client_id": reader.agent.wire_id, "client_secret": reader.key}

    narrowed = Client().post("/oauth/token", form | {"scope": "tools:read invocations:create"})
    nothing = Client().post("/oauth/token", form | {"scope": "invocations:create"})
    foreign = Client().post("/oauth/token", form | {"resource": "https://elsewhere.example"})

    assert narrowed.json()["scope"] == "tools:read"
    assert nothing.json()["error"] == "invalid_scope"
    assert foreign.json()["error"] == "invalid_target"


@pytest.mark.req("CONN-1")
def test_a_token_for_a_key_is_for_the_resource_that_was_asked_for(caller: Caller) -> None:
    form = {"grant_type": "client_credentials", "client_id": caller.agent.wire_id, "client_secret": caller.key}

    part = Client().post("/oauth/token", form | {"resource": f"{HUB}/mcp"}).json()["access_token"]
    whole = Client().post("/oauth/token", form).json()["access_token"]

    assert ask(part).status_code == 401
    assert ask(whole).status_code == 200
    for each in (part, whole):
        assert resolve_principal(each, address="", resource=f"{HUB}/mcp").agent_id == caller.agent.pk


# Scopes.


@pytest.mark.req("CONN-1")
def test_a_refresh_cannot_widen_what_was_allowed(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent, asks={"scope": "tools:read"})

    wider = program.refresh(tokens["refresh_token"], scope="tools:read agents:manage").json()

    assert wider["scope"] == "tools:read"


# Two tenants.


@pytest.mark.req("CONN-1")
def test_a_person_lets_nobody_act_as_an_agent_of_another_tenant(
    operator: Person, foreign_caller: Caller, caller: Caller
) -> None:
    answer = allow(operator.client(), Program.registered(), foreign_caller.agent)

    assert answer.status_code == 422  # the page once more, without a choice of that name
    assert not Connection.objects.exists()


@pytest.mark.req("CONN-1")
def test_a_token_of_one_tenant_shows_nothing_of_another(
    operator: Person, stranger: Person, caller: Caller, foreign_caller: Caller
) -> None:
    program = Program.registered()
    program.connect(operator, caller.agent, asks=REST)
    program.connect(stranger, foreign_caller.agent, asks=REST)

    mine = operator.client().get("/connections").content.decode()

    other = Connection.objects.get(agent=foreign_caller.agent)
    assert other.wire_id not in mine
    assert mine.count("Test client") == 1
    assert operator.client().post(f"/connections/{other.wire_id}/end").status_code in (403, 404)
    assert services.may_end(other, by=operator.by) is False


@pytest.mark.req("CONN-1")
def test_the_librarys_tables_of_tokens_stay_empty(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    program.refresh(program.connect(operator, caller.agent)["refresh_token"])

    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()
    assert not Grant.objects.exists()
