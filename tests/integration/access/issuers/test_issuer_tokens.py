"""Issuer tokens: which signed tokens speak for an agent, and which do not?"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from access.agents import services as agents
from access.issuers import jwks
from access.issuers import services as issuers
from access.models import Agent, TrustedIssuer
from access.roles import Role
from evidence.models import Fact
from kernel.problems import SchemaInvalid
from tests.conftest import make_person
from tests.support.http_server import Server, local_server
from tests.support.tokens import ask, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

ISSUER = "https://idp.example.org"
LOOPBACK = ["127.0.0.0/8"]


@dataclass
class Provider:
    """An identity provider: its private keys, and the server that publishes the public ones."""

    server: Server
    rsa: Any
    ec: Any
    stranger: Any

    def publish(self, *keys: Any) -> None:
        self.server.document = {"keys": [key.as_dict(private=False) for key in keys]}

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": ISSUER, "aud": "hub", "sub": "svc-1", "iat": now, "exp": now + 300, "scope": "tools:read"}
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def token(self, key: Any = None, alg: str = "RS256", header: dict[str, Any] | None = None, **changes: Any) -> str:
        key = key or self.rsa
        head = {name: value for name, value in ({"alg": alg, "kid": key.kid} | (header or {})).items() if value}
        return jwt.encode(head, self.claims(**changes), key, algorithms=[alg])


@pytest.fixture(scope="module")
def rsa() -> Any:
    return RSAKey.generate_key(2048, parameters={"kid": "r1", "use": "sig", "alg": "RS256"})


@pytest.fixture
def provider(rsa: Any, settings: Any) -> Iterator[Provider]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = LOOPBACK
    jwks.forget_fetched()
    with local_server() as server:
        ec = ECKey.generate_key("P-256", parameters={"kid": "e1"})
        found = Provider(server, rsa, ec, ECKey.generate_key("P-256", parameters={"kid": "e9"}))
        found.publish(rsa, ec)
        yield found
    jwks.forget_fetched()


@pytest.fixture
def owner(tenant: Any) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def issuer(provider: Provider, caller: Caller, owner: Person) -> TrustedIssuer:
    row = issuers.trust_issuer(issuer=ISSUER, audience="hub", jwks_url=f"{provider.server.url}/jwks", by=owner.by)
    issuers.map_identity(
        issuer_id=row.pk,
        subject="svc-1",
        agent_id=caller.agent.pk,
        scopes=["tools:read", "invocations:read"],
        by=owner.by,
    )
    return row


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256"])
def test_a_token_of_a_trusted_issuer_speaks_for_its_agent(alg: str, provider: Provider, issuer: TrustedIssuer) -> None:
    key = provider.ec if alg == "ES256" else provider.rsa
    if alg == "PS256":  # the same key, published without a say on its algorithm
        key = RSAKey.import_key({n: v for n, v in provider.rsa.as_dict(private=True).items() if n != "alg"})
        provider.publish(key)

    assert ask(provider.token(key, alg)).status_code == 200


@pytest.mark.req("TOOLS-15")
def test_scopes_are_what_was_mapped_and_what_the_token_says(provider: Provider, issuer: TrustedIssuer) -> None:
    both, only_mapped = provider.token(scope="tools:read agents:manage"), provider.token(scope=None)

    assert ask(both).status_code == 200
    assert ask(both, "/api/v1/agents").status_code == 403
    assert ask(only_mapped, "/api/v1/agents").status_code == 403
    assert ask(provider.token(scope="invocations:read")).status_code == 403
    assert ask(provider.token(scope=None, scp=["tools:read"])).status_code == 200


@pytest.mark.req("TOOLS-15")
def test_an_agent_with_a_token_calls_a_tool_and_the_begin_says_with_which(
    provider: Provider, issuer: TrustedIssuer, caller: Caller, owner: Person, enable: Any, grant: Any, bell: Any
) -> None:
    scopes = ["tools:read", "invocations:create"]
    issuers.map_identity(issuer_id=issuer.pk, subject="svc-2", agent_id=caller.agent.pk, scopes=scopes, by=owner.by)
    enable("echo")
    grant("sample.*")
    body = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "assistant"}, "arguments": {"text": "x"}}
    with_id, without = (provider.token(sub="svc-2", scope=None, jti=jti) for jti in ("7f-1", None))

    for token in (with_id, without):
        headers = {"Authorization": f"Bearer {token}"}
        answer = Client().post(
            "/api/v1/tools/sample.tools.echo/invoke", body, content_type="application/json", headers=headers
        )
        assert answer.status_code == 200, answer.content

    begun = Fact.objects.filter(kind="invocation.began").order_by("id")
    actor = {"kind": "agent", "id": caller.agent.wire_id, "issuer": issuer.wire_id}
    assert [json.loads(bytes(fact.leaf))["actor"] for fact in begun] == [
        actor | {"token": f"sha256:{hashlib.sha256(named.encode()).hexdigest()}"}
        for named in (f"{ISSUER}\0" + "7f-1", without)
    ]


def _hs_with_public_key(p: Provider) -> str:
    body = encoded({"alg": "HS256", "kid": "r1"}, p.claims())[:-1]
    signature = hmac.digest(p.rsa.as_pem(private=False), body.encode(), "sha256")
    return f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


NOW = time.time
BAD: dict[str, Callable[[Provider], str]] = {
    "another audience": lambda p: p.token(aud="elsewhere"),
    "no audience": lambda p: p.token(aud=None),
    "another issuer": lambda p: p.token(iss="https://idp.example.org/"),
    "no issuer": lambda p: p.token(iss=None),
    "an issuer that is a list": lambda p: p.token(iss=[ISSUER]),
    "no signature": lambda p: encoded({"alg": "none"}, p.claims()),
    "no signature, said in another case": lambda p: encoded({"alg": "None", "kid": "r1"}, p.claims()),
    "the public key as a shared secret": _hs_with_public_key,
    "expired": lambda p: p.token(exp=int(NOW()) - 61),
    "no end": lambda p: p.token(exp=None),
    "an end that is no number": lambda p: p.token(exp="tomorrow"),
    "an end far away": lambda p: p.token(exp=int(NOW()) + 2 * 24 * 3600),
    "an endless end": lambda p: p.token(exp=float("nan")),
    "an end beyond all numbers": lambda p: p.token(exp=10**400),
    "an unsigned end beyond all numbers": lambda p: encoded({"alg": "none"}, p.claims(exp=10**400)),
    "an issuer with a NUL": lambda p: encoded({"alg": "ES256"}, p.claims(iss=f"{ISSUER}\0"), "x"),
    "an issuer of half a letter": lambda p: encoded({"alg": "ES256"}, p.claims(iss="\ud800"), "x"),
    "not yet": lambda p: p.token(nbf=int(NOW()) + 120),
    "issued in the future": lambda p: p.token(iat=int(NOW()) + 120),
    "a key that nobody published": lambda p: p.token(p.stranger, "ES256"),
    "another key under a known name": lambda p: p.token(p.stranger, "ES256", header={"kid": "e1"}),
    "no key named, and several published": lambda p: p.token(header={"kid": None}),
    "an unknown subject": lambda p: p.token(sub="svc-2"),
    "no subject": lambda p: p.token(sub=None),
    "a critical extension": lambda p: p.token(header={"crit": ["b64"], "b64": True}),
    "an identity token of another type": lambda p: p.token(header={"typ": "logout+jwt"}),
    "a changed claim": lambda p: ".".join(
        [p.token().split(".")[0], encoded({}, p.claims(sub="svc-1", scope="")).split(".")[1], p.token().split(".")[2]]
    ),
    "junk": lambda p: "a.b.c",
    "two dots": lambda p: "..",
    "a huge one": lambda p: p.token(padding="x" * 9000),
}


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("what", BAD)
def test_a_bad_token_is_refused_and_says_nothing_about_why(
    what: str, provider: Provider, issuer: TrustedIssuer
) -> None:
    answer = ask(BAD[what](provider))

    assert answer.status_code == 401, what
    assert answer.json()["error"]["message"].startswith("This token is not valid")


@pytest.mark.req("TOOLS-15")
def test_clocks_may_differ_by_a_minute(provider: Provider, issuer: TrustedIssuer) -> None:
    assert ask(provider.token(exp=int(NOW()) - 30)).status_code == 200
    assert ask(provider.token(nbf=int(NOW()) + 30)).status_code == 200


@pytest.mark.req("TOOLS-15")
def test_a_refusal_says_where_tokens_come_from(provider: Provider, issuer: TrustedIssuer) -> None:
    answer = ask("a.b.c")

    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    url = f"{settings.TOOLHUB_PUBLIC_URL}/.well-known/oauth-protected-resource"
    assert f'resource_metadata="{url}"' in answer.headers["WWW-Authenticate"]
    resource = Client().get("/.well-known/oauth-protected-resource").json()
    server = Client().get("/.well-known/oauth-authorization-server").json()
    assert resource["resource"] == settings.TOOLHUB_PUBLIC_URL
    assert server["issuer"] in resource["authorization_servers"]
    assert server["token_endpoint"].endswith("/oauth/token")


@pytest.mark.req("TOOLS-15")
def test_trust_and_mappings_end_at_once(
    provider: Provider, issuer: TrustedIssuer, owner: Person, caller: Caller
) -> None:
    token = provider.token()
    assert ask(token).status_code == 200

    agents.disable_agent(agent_id=caller.agent.pk, reason="test", by=owner.by)
    assert ask(token).status_code == 401
    agents.enable_agent(agent_id=caller.agent.pk, reason="test", by=owner.by)
    issuers.distrust_issuer(issuer_id=issuer.pk, reason="test", by=owner.by)
    assert ask(token).status_code == 401
    issuers.trust_issuer(issuer=ISSUER, audience="hub", jwks_url=issuer.jwks_url, by=owner.by)
    assert ask(token).status_code == 200
    issuers.unmap_identity(identity_id=issuer.identities.get().pk, by=owner.by)
    assert ask(token).status_code == 401
    kinds = set(Fact.objects.filter(subject=issuer.wire_id).values_list("kind", flat=True))
    assert kinds == {"issuer.trusted", "issuer.distrusted", "identity.mapped", "identity.unmapped"}


@pytest.mark.req("TOOLS-15")
def test_a_token_leads_to_one_tenant_and_no_other_may_want_it(
    provider: Provider, issuer: TrustedIssuer, stranger: Person, foreign_caller: Caller
) -> None:
    url = f"{provider.server.url}/jwks"
    with pytest.raises(SchemaInvalid, match="another tenant"):
        issuers.trust_issuer(issuer=ISSUER, audience="hub", jwks_url=url, by=stranger.by)

    theirs = issuers.trust_issuer(issuer=ISSUER, audience="theirs", jwks_url=url, by=stranger.by)
    issuers.map_identity(
        issuer_id=theirs.pk, subject="svc-1", agent_id=foreign_caller.agent.pk, scopes=["tools:read"], by=stranger.by
    )

    assert ask(provider.token(aud=["hub", "theirs"])).status_code == 401  # it does not say whose it is
    assert ask(provider.token(aud=["hub", "somewhere else"])).status_code == 200


@pytest.mark.req("TOOLS-15")
def test_a_subject_of_one_tenant_is_not_mapped_to_an_agent_of_another(
    issuer: TrustedIssuer, foreign_caller: Caller, owner: Person
) -> None:
    with pytest.raises(Agent.DoesNotExist):
        issuers.map_identity(
            issuer_id=issuer.pk, subject="svc-3", agent_id=foreign_caller.agent.pk, scopes=[], by=owner.by
        )


@pytest.mark.req("TOOLS-15")
def test_new_keys_are_fetched_when_a_token_names_one_but_not_for_everybody_who_makes_one_up(
    provider: Provider, issuer: TrustedIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(provider.token()).status_code == 200
    newer = ECKey.generate_key("P-256", parameters={"kid": "e2"})
    provider.publish(newer)

    for _ in range(5):
        assert ask(provider.token(newer, "ES256")).status_code == 401  # asked a moment ago
    assert len(provider.server.heard) == 1
    monkeypatch.setattr(jwks, "AGAIN_S", 0.0)
    assert ask(provider.token(newer, "ES256")).status_code == 200
    assert len(provider.server.heard) == 2


@pytest.mark.req("TOOLS-15")
def test_a_provider_that_does_not_answer_is_said_and_what_it_said_before_is_used_for_a_while(
    provider: Provider, issuer: TrustedIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.server.status = 500
    answer = ask(provider.token())
    assert (answer.status_code, answer.json()["error"]["reason"]) == (503, "AUTH.ISSUER_UNAVAILABLE")

    provider.server.status = 200
    assert ask(provider.token()).status_code == 503  # asked a moment ago
    assert len(provider.server.heard) == 1
    jwks.forget_fetched()
    assert ask(provider.token()).status_code == 200
    provider.server.status = 500
    monkeypatch.setattr(jwks, "FRESH_S", 0.0)
    monkeypatch.setattr(jwks, "AGAIN_S", 0.0)
    assert ask(provider.token()).status_code == 200
    monkeypatch.setattr(jwks, "STALE_S", 0.0)
    assert ask(provider.token()).status_code == 503


@pytest.mark.req("TOOLS-15")
def test_nobody_waits_for_a_provider_that_somebody_else_asks(provider: Provider, issuer: TrustedIssuer) -> None:
    lock = jwks._locks.setdefault(issuer.jwks_url, threading.Lock())
    with lock:
        assert ask(provider.token()).status_code == 503
    assert not provider.server.heard
    assert ask(provider.token()).status_code == 200


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("document", [b"not json", b"[" * 5000, [], {"keys": "x"}, {"keys": [1]}, b"x" * 300_000])
def test_a_key_set_that_cannot_be_read_makes_nobody_an_agent(
    document: Any, provider: Provider, issuer: TrustedIssuer
) -> None:
    provider.server.document = document

    assert ask(provider.token()).status_code in (401, 503)


@pytest.mark.req("TOOLS-15")
def test_a_shared_secret_in_a_public_key_set_is_not_used(provider: Provider, issuer: TrustedIssuer) -> None:
    secret = OctKey.generate_key(256, parameters={"kid": "o1"})
    provider.server.document = {"keys": [secret.as_dict(private=True)]}
    token = jwt.encode({"alg": "HS256", "kid": "o1"}, provider.claims(), secret, algorithms=["HS256"])

    assert ask(token).status_code == 401


@pytest.mark.req("TOOLS-15")
def test_keys_can_be_given_instead_of_an_address(provider: Provider, caller: Caller, owner: Person) -> None:
    keys = {"keys": [provider.ec.as_dict(private=False)]}
    row = issuers.trust_issuer(issuer=ISSUER, audience="hub", jwks=keys, by=owner.by)
    issuers.map_identity(
        issuer_id=row.pk, subject="svc-1", agent_id=caller.agent.pk, scopes=["tools:read"], by=owner.by
    )

    assert ask(provider.token(provider.ec, "ES256")).status_code == 200
    assert provider.server.heard == []
    other = issuers.change_issuer(issuer_id=row.pk, audience="hub2", jwks=keys, by=owner.by)
    assert ask(provider.token(provider.ec, "ES256")).status_code == 401
    assert ask(provider.token(provider.ec, "ES256", aud=other.audience)).status_code == 200


PRIVATE = [
    "https://127.0.0.1/jwks",
    "https://[::1]/",
    "https://169.254.169.254/latest",
    "https://10.1.2.3/",
    "http://8.8.8.8/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::a00:1]/",
    "https://localhost/",
    "ftp://example.org/",
    "https://a:b@example.org/",
    "https://user@example.org/",
    "file:///etc/passwd",
    "https://x.internal/",
    "https://exa mple.org/",
    "https://[::1",
]


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("url", PRIVATE)
def test_keys_are_not_asked_of_the_hubs_neighbours(url: str, owner: Person, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []

    with pytest.raises(SchemaInvalid):
        issuers.trust_issuer(issuer=ISSUER, audience="hub", jwks_url=url, by=owner.by)
