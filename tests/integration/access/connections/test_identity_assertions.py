"""Identity assertions: what does a program get for whom an identity provider speaks (ID-JAG)?"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as configured
from django.test import Client

from access.models import Connection, ConnectionToken
from access.roles import AGENT_SCOPES
from evidence.models import Fact
from kernel.database.connections import database_time
from tests.support.connections import MCP
from tests.support.identity_assertions import (
    Enterprise,
    know_person,
    let_vouch,
    reach,
)
from tests.support.tokens import ask

if TYPE_CHECKING:
    from access.models import TrustedIssuer
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

HUB = configured.TOOLHUB_PUBLIC_URL


@pytest.mark.req("CONN-2")
def test_the_metadata_names_the_grant_and_its_profile() -> None:
    found = Client().get("/.well-known/oauth-authorization-server").json()

    assert "urn:ietf:params:oauth:grant-type:jwt-bearer" in found["grant_types_supported"]
    assert found["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]


@pytest.mark.req("CONN-2")
def test_an_assertion_gives_an_access_token_without_a_page_and_no_refresh_token(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, operator: Person
) -> None:
    answer = enterprise.show()
    got = answer.json()
    connection = Connection.objects.get()

    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    assert set(got) == {"access_token", "token_type", "expires_in", "scope"}
    assert (got["token_type"], got["expires_in"], got["scope"]) == ("Bearer", 3600, "tools:read invocations:create")
    assert reach(got["access_token"])
    assert ask(got["access_token"]).status_code == 401  # for MCP only
    assert (connection.agent, connection.member, connection.issuer) == (caller.agent, operator.user, vouching)
    assert (connection.client_kind, connection.redirect_host, connection.resource) == ("entered", "", MCP)


@pytest.mark.req("CONN-2")
def test_the_program_may_show_its_secret_in_the_header(enterprise: Enterprise, vouching: TrustedIssuer) -> None:
    basic = base64.b64encode(f"{enterprise.client_id}:{enterprise.secret}".encode()).decode()
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": enterprise.sign(),
        "resource": MCP,
    }

    answer = Client().post("/oauth/token", form, headers={"Authorization": f"Basic {basic}"})

    assert answer.status_code == 200


@pytest.mark.req("CONN-2")
def test_the_facts_say_who_was_vouched_for_and_by_whom(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, operator: Person
) -> None:
    enterprise.show()
    connection = Connection.objects.get()

    fact = Fact.objects.get(kind="connection.opened")
    data, actor = fact.content["data"], fact.content["actor"]
    assert (fact.subject, actor["id"], actor["issuer"]) == (connection.wire_id, operator.by.id, vouching.wire_id)
    assert actor["token"].startswith("sha256:")
    assert (data["issuer"], data["member"], data["agent"]) == (vouching.wire_id, operator.by.id, caller.agent.wire_id)
    assert (data["redirect_host"], data["once"], data["scopes"]) == ("", False, ["tools:read", "invocations:create"])
    assert Fact.objects.get(kind="client.met").content["data"]["how"] == "entered"


@pytest.mark.req("CONN-2")
def test_the_next_assertion_finds_the_same_connection_and_both_tokens_work(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    first, second = (enterprise.show().json()["access_token"] for _ in range(2))

    assert Connection.objects.count() == Fact.objects.filter(kind="connection.opened").count() == 1
    assert reach(first) and reach(second)
    ConnectionToken.objects.filter(kind="access").update(expires_at=database_time() - timedelta(seconds=1))
    enterprise.show()
    assert ConnectionToken.objects.filter(kind="access").count() == 1


@pytest.mark.req("CONN-2")
def test_what_differs_opens_a_connection_of_its_own(
    enterprise: Enterprise, vouching: TrustedIssuer, owner: Person
) -> None:
    know_person(owner, "s-2")
    enterprise.show()
    enterprise.show(enterprise.sign(scope="tools:read"))
    enterprise.show(enterprise.sign(sub="s-2"))

    assert Connection.objects.count() == 3
    assert {each.member.username for each in Connection.objects.select_related("member")} == {"olivia", "otto"}


@pytest.mark.req("CONN-2")
def test_scopes_are_what_rule_provider_and_program_have_in_common(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    assert enterprise.show(enterprise.sign(scope=None)).json()["scope"].split() == list(AGENT_SCOPES)
    assert enterprise.show(scope="tools:read grants:request").json()["scope"] == "tools:read"


@pytest.mark.req("CONN-2")
def test_a_token_lasts_no_longer_than_the_rule_says_and_reaches_its_tools_only(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, owner: Person
) -> None:
    let_vouch(vouching, caller, by=owner.by, token_minutes=5, tools=["sample.tools.echo"])

    assert enterprise.show().json()["expires_in"] == 300
    assert Connection.objects.get().tools == ["sample.tools.echo"]
