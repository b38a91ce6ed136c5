"""Assertion attacks: does an assertion open anything that is forged, used, changed, or of somebody who may not connect programs?"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.test import Client
from joserfc.jwk import ECKey

from access.agents import services as agents
from access.clients.services import enter_client, remove_client
from access.connections.assertions import USED
from access.connections.services import end_connection
from access.halts.services import throw_halt
from access.issuers import services as issuers
from access.members import services as members
from access.models import Connection, ConnectionToken, EnteredClient, Membership, Reach
from access.oauth import api
from access.oauth.identity_assertions import read_assertion
from access.roles import Role
from evidence.models import Fact
from kernel.database.connections import database_time
from kernel.principal import Principal
from tests.conftest import make_person
from tests.support.connections import MCP, REDIRECT, Program
from tests.support.identity_assertions import (
    ISSUER,
    JWT_BEARER,
    Enterprise,
    enter_enterprise,
    find_offered,
    know_person,
    let_vouch,
    reach,
    refused,
    trust,
)
from tests.support.tokens import ask, encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant, TrustedIssuer
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

HUB = configured.TOOLHUB_PUBLIC_URL


@pytest.mark.req("CONN-2")
def test_an_assertion_is_good_for_once(enterprise: Enterprise, vouching: TrustedIssuer) -> None:
    assertion = enterprise.sign()
    first = enterprise.show(assertion).json()["access_token"]

    again = enterprise.show(assertion)
    signed_anew = (
        enterprise.show(enterprise.sign(jti="j-same")).status_code,
        enterprise.show(enterprise.sign(jti="j-same")),
    )

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert again.json()["error_description"].startswith("This assertion was used already.")
    assert (signed_anew[0], signed_anew[1].status_code) == (200, 400)
    assert reach(first)  # whoever replays it takes nothing away


@pytest.mark.req("CONN-2")
def test_an_assertion_stays_known_while_it_could_be_shown_again_and_no_longer(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    assertion = enterprise.sign()
    enterprise.show(assertion)
    past = database_time() - timedelta(days=60)
    Connection.objects.update(opened_at=past, until=past + timedelta(days=1))

    enterprise.show()  # which clears away
    again = enterprise.show(assertion)
    ConnectionToken.objects.filter(kind="id-jag").update(expires_at=past)
    enterprise.show(enterprise.sign(scope="tools:read"))

    assert again.status_code == 400
    assert not ConnectionToken.objects.filter(kind="id-jag", connection__until__lt=database_time()).exists()


def _hs_with_public_key(e: Enterprise) -> str:
    body = encoded({"alg": "HS256", "kid": "k1", "typ": "oauth-id-jag+jwt"}, e.claims())[:-1]
    signature = hmac.digest(e.key.as_pem(private=False), body.encode(), "sha256")
    return f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _with_changed_claim(e: Enterprise) -> str:
    head, _, signature = e.sign().split(".")
    return ".".join([head, encoded({}, e.claims(sub="s-9")).split(".")[1], signature])


NOW = time.time
STRANGER = ECKey.generate_key("P-256", parameters={"kid": "k1"})
ATTACKS: dict[str, tuple[Callable[[Enterprise], str], str]] = {
    "for another audience": (lambda e: e.sign(aud="https://elsewhere.example"), "for somebody else"),
    "for the hub's token endpoint": (lambda e: e.sign(aud=f"{HUB}/oauth/token"), "for somebody else"),
    "for several audiences": (lambda e: e.sign(aud=[HUB, "https://elsewhere.example"]), "for somebody else"),
    "for the audience of the issuer's agents": (lambda e: e.sign(aud="hub"), "for somebody else"),
    "for nobody": (lambda e: e.sign(aud=None), "for somebody else"),
    "for another resource": (lambda e: e.sign(resource="https://elsewhere.example/mcp"), "another resource"),
    "for the whole hub": (lambda e: e.sign(resource=HUB), "another resource"),
    "for a tenant's own address": (lambda e: e.sign(resource=f"{MCP}/acme"), "another resource"),
    "for several resources": (lambda e: e.sign(resource=[MCP]), "another resource"),
    "for no resource": (lambda e: e.sign(resource=None), "another resource"),
    "for another client": (lambda e: e.sign(client_id="somebody-else"), "another program"),
    "for no client": (lambda e: e.sign(client_id=None), "another program"),
    "an ID token": (lambda e: e.sign(typ="JWT"), "no identity assertion"),
    "a token that says no type": (lambda e: e.sign(typ=None), "no identity assertion"),
    "an access token": (lambda e: e.sign(typ="at+jwt"), "no identity assertion"),
    "a token of a logout": (lambda e: e.sign(typ="logout+jwt"), "no identity assertion"),
    "expired": (lambda e: e.sign(iat=int(NOW()) - 361, exp=int(NOW()) - 61), "has expired"),
    "too long-lived": (lambda e: e.sign(exp=int(NOW()) + 301 + 60), "lasts longer"),
    "issued in the future": (lambda e: e.sign(iat=int(NOW()) + 120, exp=int(NOW()) + 200), "not good yet"),
    "not yet good": (lambda e: e.sign(nbf=int(NOW()) + 120), "not good yet"),
    "without an end": (lambda e: e.sign(exp=None), "when it ends"),
    "without a beginning": (lambda e: e.sign(iat=None), "when it was made"),
    "with an end that is no number": (lambda e: e.sign(exp=float("nan")), "when it ends"),
    "with an end that is true": (lambda e: e.sign(exp=True), "when it ends"),
    "not signed": (lambda e: encoded({"alg": "none", "typ": "oauth-id-jag+jwt"}, e.claims()), "not signed"),
    "signed with the public key as a secret": (_hs_with_public_key, "not signed"),
    "signed by a stranger": (lambda e: e.sign(STRANGER), "not signed"),
    "with a changed claim": (_with_changed_claim, "not signed"),
    "of an unknown issuer": (lambda e: e.sign(iss="https://other.example"), "may vouch"),
    "of an issuer with a slash more": (lambda e: e.sign(iss=ISSUER + "/"), "may vouch"),
    "of no issuer": (lambda e: e.sign(iss=None), "may vouch"),
    "of a list of issuers": (lambda e: e.sign(iss=[ISSUER]), "may vouch"),
    "of the hub itself": (lambda e: e.sign(iss=HUB), "may vouch"),
    "of a person whom nobody knows": (lambda e: e.sign(sub="s-9"), "Nobody of this hub"),
    "of an address in place of a person": (lambda e: e.sign(sub=None, email="olivia@example.org"), "name its person"),
    "without a name of its own": (lambda e: e.sign(jti=None), "name its person"),
    "with an empty name of its own": (lambda e: e.sign(jti=""), "name its person"),
    "with a scope that is no text": (lambda e: e.sign(scope=["tools:read"]), "scope of the assertion"),
    "with an end beyond all numbers": (lambda e: e.sign(exp=10**400), "when it ends"),
    "of an issuer with a NUL": (lambda e: e.sign(iss=f"{ISSUER}\0"), "no identity assertion"),
    "of a person with a NUL": (lambda e: e.sign(sub="s-1\0"), "no identity assertion"),
    "of half a letter": (
        lambda e: encoded({"alg": "ES256", "typ": "oauth-id-jag+jwt"}, e.claims(iss="\ud800"), "x"),
        "no identity assertion",
    ),
    "junk": (lambda e: "a.b.c", "no identity assertion"),
    "of no parts": (lambda e: "x", "no identity assertion"),
    "huge": (lambda e: e.sign(padding="x" * 9000), "no identity assertion"),
}


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("what", ATTACKS)
def test_an_assertion_that_is_none_is_refused_with_what_to_do(
    what: str, enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    build, sentence = ATTACKS[what]

    said = refused(enterprise.show(build(enterprise)))

    assert sentence in said, what
    assert said.isascii()
    assert not {'"', "\\"} & set(said)  # which RFC 6749 does not allow there
    assert not ConnectionToken.objects.exists()


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("scope", ["agents:manage", "agents:manage issuers:manage admin"])
def test_scopes_beyond_the_rule_are_not_given_however_they_are_asked_for(
    scope: str, enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, owner: Person
) -> None:
    let_vouch(vouching, caller, by=owner.by, scopes=["tools:read"])

    alone = enterprise.show(enterprise.sign(scope=scope), scope=scope)
    refused(alone, "invalid_scope")
    beside = enterprise.show(enterprise.sign(scope=f"tools:read invocations:create {scope}"))

    assert beside.json()["scope"] == "tools:read"


@pytest.mark.req("CONN-2")
def test_a_program_without_a_secret_or_with_a_wrong_one_shows_nothing(
    enterprise: Enterprise, vouching: TrustedIssuer, operator: Person, caller: Caller
) -> None:
    public, _ = enter_client(name="Notebook", redirect_uris=[REDIRECT], confidential=False, by=operator.by)
    registered = Program.registered(token_endpoint_auth_method="client_secret_post")
    tries: list[dict[str, Any]] = [
        {"client_secret": None},
        {"client_secret": "x"},
        {"client_secret": ""},
        {"client_id": None},
        {"client_id": public.client_id, "client_secret": ""},
        {"client_id": public.client_id, "client_secret": "x"},
        {"client_id": registered.client_id},
        {"client_id": caller.agent.wire_id},
    ]

    for wrong in tries:
        answer = enterprise.show(**wrong)
        assert "entered by hand" in refused(answer, "invalid_client")
        assert answer.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.req("CONN-2")
def test_a_program_that_registered_itself_with_a_secret_shows_nothing(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    made = (
        Client()
        .post(
            "/oauth/register",
            json.dumps(
                {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post", "client_name": "X"}
            ),
            content_type="application/json",
        )
        .json()
    )

    answer = enterprise.show(
        enterprise.sign(client_id=made["client_id"]), client_id=made["client_id"], client_secret=made["client_secret"]
    )

    refused(answer, "invalid_client")


@pytest.mark.req("CONN-2")
def test_an_assertion_of_one_tenants_issuer_opens_nothing_at_another(
    enterprise: Enterprise, vouching: TrustedIssuer, stranger: Person, foreign_caller: Caller
) -> None:
    theirs, _ = enter_enterprise(by=stranger.by, key=enterprise.key)

    untrusted = theirs.show()  # signed by the provider that our tenant trusts, for their program
    refused(untrusted)
    let_vouch(trust(theirs, by=stranger.by, audience="theirs"), foreign_caller, by=stranger.by)
    outsider = theirs.show()  # of a person of our tenant

    assert "does not belong to the tenant" in refused(outsider)


@pytest.mark.req("CONN-2")
def test_another_tenants_keys_for_the_same_issuer_sign_nothing_here(
    enterprise: Enterprise, vouching: TrustedIssuer, stranger: Person, foreign_caller: Caller
) -> None:
    theirs, _ = enter_enterprise(by=stranger.by)
    let_vouch(trust(theirs, by=stranger.by, audience="theirs"), foreign_caller, by=stranger.by)

    assert "not signed" in refused(enterprise.show(enterprise.sign(theirs.key)))


@pytest.mark.req("CONN-2")
def test_a_resource_beside_the_assertion_is_the_same(enterprise: Enterprise, vouching: TrustedIssuer) -> None:
    for named in (HUB, "https://elsewhere.example/mcp"):
        refused(enterprise.show(resource=named), "invalid_target")

    assert enterprise.show(resource=f"{MCP}/").status_code == 200


@pytest.mark.req("CONN-2")
def test_without_an_assertion_there_is_nothing(enterprise: Enterprise, vouching: TrustedIssuer) -> None:
    refused(enterprise.show(""), "invalid_request")


@pytest.mark.req("CONN-2")
def test_a_member_who_left_is_refused_and_what_they_had_is_over(
    enterprise: Enterprise, vouching: TrustedIssuer, operator: Person, owner: Person
) -> None:
    token = enterprise.show().json()["access_token"]
    members.end_membership(user_id=operator.user.pk, role=Role.OPERATOR, by=owner.by)

    again = enterprise.show()

    assert reach(token) is None
    assert again.json()["error"] == "invalid_grant"
    assert "does not belong to the tenant" in again.json()["error_description"]
    assert Connection.objects.get().end_reason == "left"


@pytest.mark.req("CONN-2")
def test_a_member_who_may_not_connect_programs_is_refused(
    enterprise: Enterprise, vouching: TrustedIssuer, tenant: Tenant
) -> None:
    know_person(make_person(tenant, "ada", Role.AUDITOR), "s-3")

    assert "may not let programs act" in refused(enterprise.show(enterprise.sign(sub="s-3")))


@pytest.mark.req("CONN-2")
def test_a_person_who_is_switched_off_is_refused(
    enterprise: Enterprise, vouching: TrustedIssuer, operator: Person
) -> None:
    operator.user.is_active = False
    operator.user.save()

    refused(enterprise.show())


@pytest.mark.req("CONN-2")
def test_a_hub_owner_without_a_membership_is_not_a_member(
    enterprise: Enterprise, vouching: TrustedIssuer, operator: Person
) -> None:
    operator.user.is_superuser = True
    operator.user.save()
    Membership.objects.filter(user=operator.user).delete()

    assert "does not belong to the tenant" in refused(enterprise.show())


@pytest.mark.req("CONN-2")
def test_a_disabled_agent_is_refused_and_counts_for_nothing(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, operator: Person
) -> None:
    token = enterprise.show().json()["access_token"]
    agents.disable_agent(agent_id=caller.agent.pk, reason="test", by=operator.by)

    again = enterprise.show()

    assert reach(token) is None
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert "is disabled" in again.json()["error_description"]


@pytest.mark.req("CONN-2")
def test_a_halted_agent_is_shown_no_tools(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, operator: Person, enable: Any, grant: Any
) -> None:
    enable("echo")
    grant("sample.*")
    token = enterprise.show().json()["access_token"]
    before = find_offered(token)

    throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="test", by=operator.by)

    assert before == ["sample.tools.echo"]
    assert find_offered(token) == find_offered(enterprise.show().json()["access_token"]) == []


@pytest.mark.req("CONN-2")
def test_an_assertion_is_no_token_of_an_agent_and_opens_no_door_by_itself(
    enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, owner: Person
) -> None:
    issuers.map_identity(
        issuer_id=vouching.pk, subject="s-1", agent_id=caller.agent.pk, scopes=["tools:read"], by=owner.by
    )

    assert ask(enterprise.sign(aud="hub")).status_code == 401
    assert reach(enterprise.sign()) is None
    assert ask(enterprise.sign(aud="hub", typ="JWT")).status_code == 200  # what the mapping is for


@pytest.mark.req("CONN-2")
def test_no_text_that_is_known_elsewhere_ends_what_was_vouched_for(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    token = enterprise.show(enterprise.sign(jti="j-known")).json()["access_token"]
    for code in (f"id-jag\0{vouching.pk}\0j-known", "j-known", enterprise.client_id):
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": "v" * 64, "redirect_uri": REDIRECT}
        said = {"client_id": enterprise.client_id, "client_secret": enterprise.secret}
        assert Client().post("/oauth/token", form | said).status_code == 400

    assert reach(token)


@pytest.mark.req("CONN-2")
def test_the_program_gives_its_token_back(enterprise: Enterprise, vouching: TrustedIssuer) -> None:
    token = enterprise.show().json()["access_token"]
    said = {"client_id": enterprise.client_id, "client_secret": enterprise.secret}

    assert Client().post("/oauth/revoke", {"token": token} | said).status_code == 200
    assert reach(token) is None
    assert enterprise.show().status_code == 200  # by a connection of its own
    assert Connection.objects.count() == 2


@pytest.mark.req("CONN-2")
def test_nothing_of_an_assertion_is_in_the_log(
    enterprise: Enterprise, vouching: TrustedIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = enterprise.sign(), enterprise.sign(STRANGER)
    with caplog.at_level(logging.DEBUG):
        token = enterprise.show(good).json()["access_token"]
        enterprise.show(good)
        enterprise.show(bad)

    written = "\n".join([caplog.text, *(str(vars(each)) for each in caplog.records)])
    kept = repr(list(ConnectionToken.objects.values())) + repr([fact.content for fact in Fact.objects.all()])
    for secret in (good, bad, good.split(".")[2], bad.split(".")[2], token, enterprise.secret):
        assert secret not in kept
        assert secret not in written


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("how", ["revoked", "given back", "rule set again", "left and came back"])
def test_an_assertion_that_was_used_is_known_after_the_end_of_what_it_opened(
    how: str,
    enterprise: Enterprise,
    vouching: TrustedIssuer,
    caller: Caller,
    operator: Person,
    owner: Person,
    second_operator: Person,
) -> None:
    assertion = enterprise.sign()
    token = enterprise.show(assertion).json()["access_token"]
    match how:
        case "revoked":
            end_connection(connection_id=Connection.objects.get().pk, by=operator.by)
        case "given back":
            said = {"client_id": enterprise.client_id, "client_secret": enterprise.secret}
            Client().post("/oauth/revoke", {"token": token, **said})
        case "rule set again":
            let_vouch(vouching, caller, by=owner.by)
        case "left and came back":
            members.end_membership(user_id=operator.user.pk, role=Role.OPERATOR, by=owner.by)
            members.give_membership(
                tenant=caller.agent.tenant,
                user=operator.user,
                role=Role.OPERATOR,
                by=Principal.system("test", tenant_id=owner.by.tenant_id),
            )

    again = enterprise.show(assertion)
    assert reach(token) is None
    assert (again.status_code, USED in again.json()["error_description"]) == (400, True)
    assert not Connection.objects.filter(ended_at=None).exists()


def while_judged(monkeypatch: pytest.MonkeyPatch, happens: Callable[[EnteredClient], object]) -> None:
    """Something happens behind the look at the assertion, and before anything is opened."""

    def judge(text: str, *, client: EnteredClient) -> Any:
        judged = read_assertion(text, client=client)
        happens(client)
        return judged

    monkeypatch.setattr(api, "read_assertion", judge)


@pytest.mark.req("CONN-2")
def test_an_assertion_judged_with_keys_that_were_changed_meanwhile_opens_nothing(
    enterprise: Enterprise, vouching: TrustedIssuer, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"keys": [STRANGER.as_dict(private=False)]}
    while_judged(
        monkeypatch, lambda _: issuers.change_issuer(issuer_id=vouching.pk, audience="hub", jwks=keys, by=owner.by)
    )

    assert "have changed" in refused(enterprise.show())


@pytest.mark.req("CONN-2")
def test_a_program_removed_while_its_assertion_is_judged_opens_nothing(
    enterprise: Enterprise, vouching: TrustedIssuer, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_judged(monkeypatch, lambda client: remove_client(client_id=client.pk, reason="test", by=owner.by))

    assert "not known here any more" in refused(enterprise.show())


@pytest.mark.req("CONN-2")
def test_a_connection_that_is_about_to_end_is_followed_by_another(
    enterprise: Enterprise, vouching: TrustedIssuer
) -> None:
    enterprise.show()
    Connection.objects.update(until=database_time() + timedelta(minutes=1))

    assert enterprise.show().json()["expires_in"] > 3500
    assert Connection.objects.count() == 2


@pytest.mark.req("CONN-1", "CONN-2")
@pytest.mark.parametrize("grant", [JWT_BEARER, "authorization_code", "refresh_token", "client_credentials"])
@pytest.mark.parametrize("field", ["client_id", "client_secret", "assertion", "code", "refresh_token"])
def test_a_nul_in_a_field_is_refused_before_it_is_looked_for(grant: str, field: str, enterprise: Enterprise) -> None:
    said = {"client_id": enterprise.client_id, "client_secret": enterprise.secret, "grant_type": grant}

    answers = [Client().post(f"/oauth/{path}", said | {field: "a\0"}) for path in ("token", "revoke")]

    assert [(each.status_code, each.json()["error"]) for each in answers] == [(400, "invalid_request")] * 2


@pytest.mark.req("CONN-2")
def test_a_nul_in_the_name_of_the_header_is_refused(enterprise: Enterprise) -> None:
    text = base64.b64encode(b"a%00:b").decode()

    answer = Client().post(
        "/oauth/token", {"grant_type": JWT_BEARER, "assertion": "x"}, headers={"Authorization": f"Basic {text}"}
    )

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
