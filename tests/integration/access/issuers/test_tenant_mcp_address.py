"""Tenant MCP address: does `/mcp/<tenant>` send clients to the tenant's own identity provider, and let in its tokens and no others?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from joserfc import jwt
from joserfc.jwk import ECKey

from access.issuers import services as issuers
from access.roles import AGENT_SCOPES, Role
from kernel.problems import SchemaInvalid
from tests.conftest import make_caller, make_person
from tests.support.entry_paths import at_the_door, modern_request
from tests.support.tokens import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant, TrustedIssuer
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.entry_paths import Sent

pytestmark = pytest.mark.django_db
REALM = "https://keycloak.example.org/realms/acme"
METADATA = "/.well-known/oauth-protected-resource/mcp"
KEY = ECKey.generate_key("P-256", parameters={"kid": "e1"})
JWKS = {"keys": [KEY.as_dict(private=False)]}


def address(slug: str = "acme") -> str:
    return f"{settings.TOOLHUB_PUBLIC_URL}/mcp/{slug}"


def make_token(**changes: Any) -> str:
    """As Keycloak makes them: with scopes of its own."""
    now = int(time.time())
    usual = {"iss": REALM, "aud": [address(), "account"], "sub": "u-1", "iat": now, "exp": now + 300}
    claims = usual | {"scope": "openid profile email"} | changes
    return jwt.encode({"alg": "ES256", "kid": "e1"}, claims, KEY, algorithms=["ES256"])


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def issuer(caller: Caller, owner: Person) -> TrustedIssuer:
    row = issuers.trust_issuer(issuer=REALM, audience=address(), jwks=JWKS, by=owner.by)
    issuers.map_identity(
        issuer_id=row.pk, subject="u-1", agent_id=caller.agent.pk, scopes=list(AGENT_SCOPES), by=owner.by
    )
    return row


def list_tools(caller: Caller, credential: str, path: str = "/mcp/acme") -> Sent:
    body, headers = modern_request(caller, "tools/list")
    return at_the_door(body, headers | {"Authorization": f"Bearer {credential}"}, path=path)


@pytest.mark.req("CONN-2")
def test_a_client_that_knows_the_address_finds_the_tenants_provider_and_its_token_calls_a_tool(
    issuer: TrustedIssuer,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Any,
    sandbox: Any,
) -> None:
    enable()
    grant()
    refused = list_tools(caller, "nothing")
    challenge = refused.headers["www-authenticate"]
    described = Client().get(f"{METADATA}/acme").json()
    body, headers = modern_request(caller, "tools/call", {"name": "sample_tools_echo", "arguments": {"text": "hi"}})

    called = at_the_door(body, headers | {"Authorization": f"Bearer {make_token()}"}, path="/mcp/acme/")

    assert refused.status == 401
    assert f'resource_metadata="{settings.TOOLHUB_PUBLIC_URL}{METADATA}/acme"' in challenge
    assert "scope=" not in challenge  # of the hub, which the provider would refuse to give
    assert (described["resource"], described["authorization_servers"]) == (address(), [REALM])
    assert "scopes_supported" not in described
    assert called.status == 200
    assert called.body["result"].get("isError") is not True, called.body


@pytest.mark.req("TOOLS-15")
def test_a_token_that_names_scopes_of_the_hub_has_no_others(issuer: TrustedIssuer, caller: Caller) -> None:
    reads, calls = make_token(scope="openid tools:read"), make_token(scope="invocations:create")

    assert list_tools(caller, reads).status == 200
    refused = list_tools(caller, calls)
    assert refused.status == 403
    assert "scope=" not in refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]


@pytest.mark.req("TOOLS-15")
def test_a_token_for_the_tenants_address_is_for_nothing_else(issuer: TrustedIssuer, caller: Caller) -> None:
    token = make_token(scope="tools:read")

    assert list_tools(caller, token).status == 200
    assert list_tools(caller, token, "/mcp").status == 401
    assert ask(token).status_code == 401


@pytest.mark.req("TOOLS-15")
def test_a_token_for_something_else_is_not_for_the_tenants_address(
    issuer: TrustedIssuer, caller: Caller, owner: Person
) -> None:
    other = issuers.trust_issuer(issuer=f"{REALM}-ci", audience="hub", jwks=JWKS, by=owner.by)
    issuers.map_identity(issuer_id=other.pk, subject="ci", agent_id=caller.agent.pk, scopes=["tools:read"], by=owner.by)
    of_machines = {"iss": f"{REALM}-ci", "sub": "ci", "scope": "tools:read"}

    assert ask(make_token(aud="hub", **of_machines)).status_code == 200
    assert list_tools(caller, make_token(aud="hub", **of_machines)).status == 401
    assert list_tools(caller, make_token(aud=[address(), "hub"], **of_machines)).status == 401
    described = Client().get(f"{METADATA}/acme").json()
    assert described["authorization_servers"] == [REALM]


@pytest.mark.req("TOOLS-15", "TOOLS-22")
def test_a_key_of_the_tenant_comes_in_and_one_of_another_tenant_does_not(
    issuer: TrustedIssuer, caller: Caller, foreign_tenant: Tenant
) -> None:
    theirs = make_caller(make_person(foreign_tenant, "ursula", Role.OWNER).by, "theirs")

    assert list_tools(caller, caller.key).status == 200
    refused = list_tools(caller, theirs.key)

    assert refused.status == 401
    assert refused.body["error"]["reason"] == "AUTH.UNAUTHENTICATED"
    assert list_tools(caller, theirs.key, "/mcp").status == 200


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("path", ["/mcp/foreign", "/mcp/nobody", "/mcp/ACME"])
def test_a_tenant_without_a_provider_of_its_own_has_no_such_address_and_neither_has_nobody(
    path: str, issuer: TrustedIssuer, caller: Caller, foreign_tenant: Tenant
) -> None:
    answer = list_tools(caller, caller.key, path)
    described = Client().get(METADATA + path.removeprefix("/mcp"))

    assert (answer.status, answer.body["error"]["reason"]) == (404, "RESOURCE.NOT_FOUND")
    assert settings.TOOLHUB_PUBLIC_URL + "/mcp." in answer.body["error"]["remedy"]
    assert (described.status_code, described.json()["error"]) == (404, "not_found")


@pytest.mark.req("CONN-2", "TOOLS-15")
def test_the_address_goes_with_the_trust_at_once(issuer: TrustedIssuer, caller: Caller, owner: Person) -> None:
    token = make_token()
    assert list_tools(caller, token).status == 200

    issuers.distrust_issuer(issuer_id=issuer.pk, reason="test", by=owner.by)

    assert list_tools(caller, token).status == 404
    assert Client().get(f"{METADATA}/acme").status_code == 404


@pytest.mark.req("TOOLS-22")
def test_no_tenant_takes_the_address_of_another(issuer: TrustedIssuer, foreign_tenant: Tenant) -> None:
    stranger = make_person(foreign_tenant, "ursula", Role.OWNER)

    for audience in (address("acme"), address("nobody"), address("foreign") + "/"):
        with pytest.raises(SchemaInvalid, match=r"MCP address of this tenant is .*/mcp/foreign"):
            issuers.trust_issuer(issuer=f"{REALM}2", audience=audience, jwks=JWKS, by=stranger.by)
    theirs = issuers.trust_issuer(issuer=f"{REALM}2", audience="hub", jwks=JWKS, by=stranger.by)
    with pytest.raises(SchemaInvalid, match="MCP address of this tenant"):
        issuers.change_issuer(issuer_id=theirs.pk, audience=address("acme"), jwks=JWKS, by=stranger.by)


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("path", ["/mcp/acme/.well-known/openid-configuration", "/mcp/acme/.well-known/anything"])
def test_what_clients_guess_beside_the_address_is_json_too(path: str, issuer: TrustedIssuer) -> None:
    answer = Client().get(path)

    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
