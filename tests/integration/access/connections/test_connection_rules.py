"""Connection rules: does what a tenant says of its connections hold for new and old ones, and whom does it ask to sign in again?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import F

from access.connections.connection_rules import find_bounds, set_connection_rule
from access.models import Connection, ConnectionToken
from evidence.models import Fact
from kernel.database.connections import database_time
from kernel.problems import SchemaInvalid
from tests.support.calls import assert_problem
from tests.support.connections import REDIRECT, Program, allow, read_answer
from tests.support.entry_paths import at_the_door, modern_request, usual_headers
from tests.support.mcp_streams import OLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
NOTHING: dict[str, Any] = dict.fromkeys(("days", "idle_days", "token_minutes", "sign_in_minutes"))


def set_rule(operator: Person, **terms: int) -> None:
    set_connection_rule(**NOTHING | terms, by=operator.by)


@pytest.mark.req("CONN-1")
def test_a_tenant_says_less_than_the_hub_and_never_more(operator: Person, stranger: Person) -> None:
    client = operator.client()
    assert find_bounds(operator.by.tenant_id).days == settings.TOOLHUB_CONNECTION_DAYS

    refused = client.post("/connections/rule", {"days": str(settings.TOOLHUB_CONNECTION_DAYS + 1)})
    short = client.post("/connections/rule", {"token_minutes": "9"})  # some programs could not keep up
    done = client.post("/connections/rule", {"days": "7", "idle_days": "2", "token_minutes": "15"})

    assert (refused.status_code, short.status_code, done.status_code) == (422, 422, 302)
    found = find_bounds(operator.by.tenant_id)
    assert (found.days, found.idle, found.token_s, found.sign_in) == (7, timedelta(days=2), 900, None)
    assert find_bounds(stranger.by.tenant_id).days == settings.TOOLHUB_CONNECTION_DAYS
    assert 'value="7"' in client.get("/connections/rule").content.decode()
    (fact,) = Fact.objects.filter(kind="connection_rule.set")
    assert json.loads(bytes(fact.leaf))["data"]["days"] == 7
    with pytest.raises(SchemaInvalid):
        set_rule(operator, days=0)

    client.post("/connections/rule", {"days": "7", "idle_days": "2", "token_minutes": "15"})
    assert Fact.objects.filter(kind="connection_rule.set").count() == 1
    client.post("/connections/rule", {})
    assert find_bounds(operator.by.tenant_id).days == settings.TOOLHUB_CONNECTION_DAYS
    assert Fact.objects.filter(kind="connection_rule.set").count() == 2


@pytest.mark.req("CONN-1")
def test_the_rule_is_read_and_set_over_rest_and_what_is_left_out_is_left_to_the_hub(caller: Caller) -> None:
    before = caller.get("/connection-rule")
    hub = {"days": settings.TOOLHUB_CONNECTION_DAYS, "idle_days": settings.TOOLHUB_CONNECTION_IDLE_DAYS}
    hub |= {"token_minutes": settings.TOOLHUB_CONNECTION_TOKEN_S // 60}
    assert before.json()["data"] == NOTHING | {
        "in_force": hub | {"sign_in_minutes": None}, "set_by": None, "set_at": None,
    }  # fmt: skip

    first = caller.put("/connection-rule", {"days": 7, "sign_in_minutes": 60}, **{"If-Match": before.headers["ETag"]})
    stale = caller.put("/connection-rule", {"days": 8}, **{"If-Match": before.headers["ETag"]})
    second = caller.put("/connection-rule", {"idle_days": 2})

    said = first.json()["data"]
    assert (said["days"], said["idle_days"], said["sign_in_minutes"]) == (7, None, 60)
    assert said["in_force"] == hub | {"days": 7, "sign_in_minutes": 60}
    assert said["set_by"] == caller.agent.wire_id
    assert_problem(stale, 412, "STATE.PRECONDITION_FAILED")
    assert (second.json()["data"]["days"], second.json()["data"]["idle_days"]) == (None, 2)
    assert second.json() == caller.get("/connection-rule").json()
    assert Fact.objects.filter(kind="connection_rule.set").count() == 2


@pytest.mark.req("CONN-1")
def test_what_no_hub_takes_is_another_refusal_than_what_this_one_does_not(
    caller: Caller, foreign_caller: Caller
) -> None:
    more = caller.put("/connection-rule", {"days": settings.TOOLHUB_CONNECTION_DAYS + 1})
    never = caller.put("/connection-rule", {"token_minutes": 9})
    unknown = caller.put("/connection-rule", {"hours": 1})

    assert_problem(more, 409, "STATE.UNFIT")
    assert more.json()["error"]["details"]["findings"][0]["pointer"] == "/days"
    assert_problem(never, 422, "SCHEMA.VALIDATION_FAILED")
    assert_problem(unknown, 422, "SCHEMA.VALIDATION_FAILED")
    assert not Fact.objects.filter(kind="connection_rule.set").exists()
    caller.put("/connection-rule", {"days": 7})
    assert foreign_caller.get("/connection-rule").json()["data"]["days"] is None


@pytest.mark.req("CONN-1")
def test_the_hub_that_says_less_later_binds_the_tenant(operator: Person, settings: Any) -> None:
    set_rule(operator, days=60, token_minutes=60)
    settings.TOOLHUB_CONNECTION_DAYS, settings.TOOLHUB_CONNECTION_TOKEN_S = 5, 600

    found = find_bounds(operator.by.tenant_id)

    assert (found.days, found.token_s) == (5, 600)


@pytest.mark.req("CONN-1")
def test_a_new_connection_and_its_tokens_last_no_longer(operator: Person, caller: Caller) -> None:
    set_rule(operator, days=7, idle_days=2, token_minutes=15)
    program, browser = Program.registered(), operator.client()

    page = program.open_page(browser).content.decode()
    beyond = allow(browser, program, caller.agent, days="8")
    tokens = program.connect(operator, caller.agent, days="7")

    assert 'max="7"' in page
    assert "15 minutes" in page
    assert beyond.status_code == 422
    assert 890 < tokens["expires_in"] <= 900
    row = ConnectionToken.objects.get(kind="refresh")
    assert row.expires_at - row.created_at <= timedelta(days=2, minutes=1)


@pytest.mark.req("CONN-1")
def test_an_older_connection_follows_with_its_next_refresh(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent)
    assert first["expires_in"] > 3000

    set_rule(operator, token_minutes=15)
    second = program.refresh(first["refresh_token"]).json()

    assert 890 < second["expires_in"] <= 900


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("terms", [{"days": 7}, {"idle_days": 7}])
def test_one_that_has_lasted_too_long_by_now_gets_no_newer_token(
    terms: dict[str, int], operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent)
    week = timedelta(days=7, minutes=1)
    Connection.objects.update(opened_at=F("opened_at") - week)
    ConnectionToken.objects.update(created_at=database_time() - week)

    set_rule(operator, **terms)
    answer = program.refresh(tokens["refresh_token"])
    set_rule(operator)
    again = program.refresh(tokens["refresh_token"])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert again.status_code == 200  # nothing was used up


# Signing in again.


@pytest.fixture
def tools(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable("echo")
    enable("write", side_effect="Write", idempotency="keyed")
    grant()


def grow_old(browser: Client, seconds: int = 600) -> Client:
    session = browser.session
    for record in session["account_authentication_methods"]:
        record["at"] -= seconds
    session.save()
    return browser


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("reach", [{"reach": "all"}, {"reach": "these", "tools": [WRITE]}])
def test_who_signed_in_too_long_ago_proves_who_they_are_before_tools_that_change_things(
    reach: dict[str, Any], tools: None, operator: Person, caller: Caller
) -> None:
    set_rule(operator, sign_in_minutes=5)
    program, browser = Program.registered(), grow_old(operator.client())
    assert "within 5 minutes of signing in" in program.open_page(browser).content.decode()

    sent = allow(browser, program, caller.agent, **reach)

    assert sent.status_code == 302
    to = urlsplit(sent.headers["Location"])
    assert to.path == "/account/confirm"
    assert parse_qs(to.query)["next"][0].startswith("/oauth/authorize?")
    assert not Connection.objects.exists()

    operator.user.set_password("correct horse 7 battery")
    operator.user.save()
    browser = grow_old(operator.client())
    back = browser.post(
        "/account/confirm", {"password": "correct horse 7 battery", "next": parse_qs(to.query)["next"][0]}
    )
    assert back.headers["Location"].startswith("/oauth/authorize?")
    done = allow(browser, program, caller.agent, **reach)
    assert done.status_code == 303
    assert "code" in read_answer(done)


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "form",
    [{"reach": "these", "tools": [ECHO]}, {"reach": "all", "scopes": ["tools:read"]}],
    ids=["tools that read", "no calls"],
)
def test_nobody_is_asked_again_for_what_only_reads(
    form: dict[str, Any], tools: None, operator: Person, caller: Caller
) -> None:
    set_rule(operator, sign_in_minutes=5)

    done = allow(grow_old(operator.client()), Program.registered(), caller.agent, **form)

    assert done.headers["Location"].startswith(REDIRECT)


@pytest.mark.req("CONN-1")
def test_whose_provider_answers_for_them_is_sent_there_and_a_session_of_it_is_no_proof(
    tools: None, operator: Person, caller: Caller, settings: Any
) -> None:
    app = {
        "provider_id": "oidc", "name": "Example", "client_id": "hub", "secret": "s",
        "settings": {"server_url": "https://idp.example.org"},
    }  # fmt: skip
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    operator.user.set_unusable_password()
    operator.user.save()
    SocialAccount.objects.create(user=operator.user, provider="oidc", uid="o-1")
    set_rule(operator, sign_in_minutes=5)
    program, browser = Program.registered(), grow_old(operator.client())

    sent = allow(browser, program, caller.agent)

    to = urlsplit(sent.headers["Location"])
    assert (to.path, parse_qs(to.query)["max_age"]) == ("/sign-in", ["300"])
    page = browser.get(sent.headers["Location"]).content.decode()
    (address,) = re.findall(r'action="(/account/sso/oidc[^"]*)"', page)
    assert parse_qs(urlsplit(unescape(address)).query)["auth_params"] == ["max_age=300"]


# Widening.


def call(caller: Caller, token: str, *, modern: bool) -> Any:
    bearer = replace(caller, key=token)
    asked = {"name": ECHO, "arguments": {"text": "x"}}
    if modern:
        return at_the_door(*modern_request(bearer, "tools/call", asked))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).encode()
    return at_the_door(body, usual_headers(bearer) | OLDER)


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("modern", [True, False])
def test_a_call_that_the_connection_has_no_scope_for_is_answered_with_what_to_ask_for(
    modern: bool, tools: None, operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    token = program.connect(operator, caller.agent, scopes=["tools:read"])["access_token"]

    told = call(caller, token, modern=modern)

    assert told.status == 403
    challenge = told.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert "resource_metadata=" in challenge
    # One before 2026-07-28 asks for exactly this, and would lose what it has.
    wanted = "invocations:create" if modern else "tools:read invocations:create"
    assert f'scope="{wanted}"' in challenge
    # It was decided on and recorded as every call.
    ended = Fact.objects.get(kind="invocation.ended")
    assert json.loads(bytes(ended.leaf))["outcome"] == "denied"


@pytest.mark.req("CONN-1")
def test_the_page_shows_what_is_new_and_a_fact_says_that_the_program_may_do_more(
    tools: None, operator: Person, caller: Caller, bell: Bell
) -> None:
    program = Program.registered()
    program.connect(operator, caller.agent, scopes=["tools:read"])
    asks = {"scope": "tools:read invocations:create"}

    page = program.open_page(operator.client(), **asks).content.decode()
    tokens = program.connect(operator, caller.agent, asks=asks)

    new = page.partition("New is:")[2].partition("</ul>")[0]
    assert "Use the tools" in new
    assert "See which tools there are" not in new
    assert tokens["scope"] == "tools:read invocations:create"
    assert call(caller, tokens["access_token"], modern=True).status == 200
    (fact,) = Fact.objects.filter(kind="connection.stepped_up")
    data = json.loads(bytes(fact.leaf))["data"]
    assert (data["before"], data["added"]) == (["tools:read"], ["invocations:create"])
