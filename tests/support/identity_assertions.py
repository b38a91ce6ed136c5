"""Identity assertions in tests: a provider with which people sign in, what it signs for them, and a program that shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.test import Client
from joserfc import jwt
from joserfc.jwk import ECKey

from access.authentication.bearer import resolve_principal
from access.clients.services import enter_client
from access.issuers import services as issuers
from access.issuers.assertion_rules import set_assertion_rule
from access.models import Connection
from access.roles import AGENT_SCOPES
from invocations.decide.callable_tools import offer_tools
from kernel.problems import Unauthenticated
from tests.support.connections import MCP, REDIRECT

if TYPE_CHECKING:
    from access.models import EnteredClient, TrustedIssuer
    from kernel.principal import Principal
    from tests.conftest import Caller, Person

ISSUER = "https://idp.example.org"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TYPE = "oauth-id-jag+jwt"
_numbers = count()


def sign_in_with(issuer: str = ISSUER) -> dict[str, Any]:
    """For SOCIALACCOUNT_PROVIDERS."""
    app = {
        "provider_id": "oidc",
        "name": "Example",
        "client_id": "hub",
        "secret": "s",
        "settings": {"server_url": issuer},
    }
    return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}


def know_person(person: Person, subject: str) -> None:
    """As if they had signed in with the provider."""
    SocialAccount.objects.create(user=person.user, provider="oidc", uid=subject)


@dataclass
class Enterprise:
    """A provider, and a program of one tenant that asks it."""

    client_id: str
    secret: str
    key: Any = field(default_factory=lambda: ECKey.generate_key("P-256", parameters={"kid": "k1"}))
    issuer: str = ISSUER
    subject: str = "s-1"

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": settings.TOOLHUB_PUBLIC_URL,
            "client_id": self.client_id,
            "resource": MCP,
            "jti": f"j-{next(_numbers)}",
            "iat": now,
            "exp": now + 300,
            "scope": "tools:read invocations:create",
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def sign(self, key: Any = None, *, alg: str = "ES256", typ: str | None = TYPE, **changes: Any) -> str:
        key = key or self.key
        head = {"alg": alg, "kid": self.key.kid} | ({"typ": typ} if typ else {})
        return jwt.encode(head, self.claims(**changes), key, algorithms=[alg])

    def show(self, assertion: str | None = None, **form: Any) -> Any:
        """What the token endpoint answers."""
        said = {"grant_type": JWT_BEARER, "client_id": self.client_id, "client_secret": self.secret}
        said["assertion"] = self.sign() if assertion is None else assertion
        return Client().post("/oauth/token", {name: each for name, each in (said | form).items() if each is not None})


def enter_enterprise(*, by: Principal, **changes: Any) -> tuple[Enterprise, EnteredClient]:
    entered, secret = enter_client(name="Desk", redirect_uris=[REDIRECT], confidential=True, by=by)
    return Enterprise(entered.client_id, secret, **changes), entered


def trust(enterprise: Enterprise, *, by: Principal, audience: str = "hub") -> TrustedIssuer:
    keys = {"keys": [enterprise.key.as_dict(private=False)]}
    return issuers.trust_issuer(issuer=enterprise.issuer, audience=audience, jwks=keys, by=by)


def let_vouch(issuer: TrustedIssuer, caller: Caller, *, by: Principal, **terms: Any) -> TrustedIssuer:
    usual: dict[str, Any] = {"scopes": AGENT_SCOPES, "tools": None, "token_minutes": 60}
    return set_assertion_rule(issuer_id=issuer.pk, agent_id=caller.agent.pk, by=by, **usual | terms)


def reach(token: str, resource: str = MCP) -> Principal | None:
    """As whom a token gets in; None: it does not."""
    try:
        return resolve_principal(token, address="", resource=resource)
    except Unauthenticated:
        return None


def find_offered(token: str) -> list[str]:
    """The tools that its program is shown."""
    by = reach(token)
    assert by is not None
    return [each.id for each in offer_tools(by=by).manifests]


def refused(answer: Any, error: str = "invalid_grant") -> str:
    """What the refusal says. Nothing was opened by it."""
    assert (answer.status_code, answer.json()["error"]) == (401 if error == "invalid_client" else 400, error), (
        answer.content
    )
    assert answer.headers["Cache-Control"] == "no-store"
    assert not Connection.objects.exists()
    return str(answer.json()["error_description"])
