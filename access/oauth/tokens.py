"""Tokens: which agent a signed token (JWT) speaks for.

Tokens of two kinds: those of a :class:`TrustedIssuer`, whose audience says which tenant they are for and whose subject is mapped
to an agent; and the hub's own, short-lived ones that stand for an API key (RFC 6749 §4.4) and end with it. Only the signature,
the claims and rows that were read for this request decide.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from access.connections.resources import covers_resource, hub_resource, is_of_tenant
from access.issuers.jwks import load_issuer_keys
from access.models import AgentIdentity, ApiKey, TrustedIssuer
from access.problems import IssuerUnavailable
from access.roles import SCOPES
from evidence.keys.keystore import get_keystore
from evidence.problems import KeyUnavailable
from kernel.database.tenancy import hub_wide
from kernel.ids import decode, new_id
from kernel.principal import ActorKind, Principal
from kernel.problems import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

# Signatures that need a private key to make. `none` and shared secrets are not among them.
ALGORITHMS = ("RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519")
TYPES = (None, "JWT", "jwt", "at+jwt", "application/at+jwt")
SKEW_S = 60
MAX_BYTES = 8192
HUB_LIFETIME_S = 600
PURPOSE = b"hub-tokens"
HUB_ALGORITHM = "HS256"
NOT_VALID = "This token is not valid: it may be expired, for somebody else, or of an issuer that nobody here trusts."
REMEDY = "Get a fresh token, or ask an owner of your tenant which issuers and subjects are known."


class BadToken(Exception):
    """For the caller every bad token is the same."""


def looks_like_token(text: str) -> bool:
    return text.count(".") == 2


def _json(part: str) -> dict[str, Any]:
    value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    if not isinstance(value, dict):
        raise TypeError("Not an object")
    return value


def _check_storable(*documents: dict[str, Any]) -> None:
    """Raises :class:`ValueError` for a NUL and for half of a surrogate pair: claims are looked for in the database, which has no such
    texts, before anybody knows who wrote them.
    """
    text = json.dumps(documents, ensure_ascii=False)
    text.encode()
    if "\\u0000" in text:
        raise ValueError("A claim holds a NUL character.")


def read_unverified(text: str, *, types: Container[str | None] = TYPES) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims as they stand there, to find out who would have to have signed them."""
    if len(text) > MAX_BYTES or not text.isascii():
        raise BadToken
    try:
        header, claims = (_json(part) for part in text.split(".")[:2])
        _check_storable(header, claims)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadToken from error
    if "crit" in header or header.get("typ") not in types or not isinstance(header.get("kid", ""), str):
        raise BadToken
    return header, claims


def _check_claims(claims: dict[str, Any], *, issuer: str, audience: str, longest_s: int) -> None:
    registry = jwt.JWTClaimsRegistry(
        leeway=SKEW_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        sub={"essential": True, "allow_blank": False},
        exp={"essential": True},
    )
    registry.validate(claims)
    if not math.isfinite(claims["exp"]) or claims["exp"] > time.time() + longest_s + SKEW_S:
        raise BadToken  # whoever stole it would have it for long


def _audiences(claims: dict[str, Any]) -> list[str]:
    found = claims.get("aud")
    return [found] if isinstance(found, str) else [each for each in found or [] if isinstance(each, str)]


def _scopes(claims: dict[str, Any], most: Iterable[str], *, foreign_words: bool = False) -> frozenset[str]:
    """What was mapped, and no more than the token says, if it says anything. ``foreign_words``: of a provider that was not told the
    hub's scopes; where none of them stands there, that says nothing.
    """
    said = claims.get("scope", claims.get("scp"))
    held = frozenset(most) & frozenset(SCOPES)
    if said is None:
        return held
    words = frozenset(said.split() if isinstance(said, str) else [each for each in said if isinstance(each, str)])
    return held if foreign_words and not words & frozenset(SCOPES) else held & words


# Tokens of others.


def find_signing_key(issuer: TrustedIssuer, header: dict[str, Any]) -> Any:
    kid = header.get("kid")
    for unknown_kid in (False, True):
        keys = load_issuer_keys(issuer, unknown_kid=unknown_kid)
        fitting = [key for key in keys if key.kid == kid] if kid else keys
        if len(fitting) == 1:
            return fitting[0]
    raise BadToken


def token_digest(text: str, claims: dict[str, Any]) -> str:
    """Which token of its issuer it is, for evidence: by its ``jti``, so that the issuer's log tells the same; else by its text."""
    jti = claims.get("jti")
    named = f"{claims['iss']}\0{jti}" if isinstance(jti, str) and jti else text
    return "sha256:" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


def _of_issuer(text: str, header: dict[str, Any], claims: dict[str, Any], *, resource: str) -> Principal:
    if header.get("alg") not in ALGORITHMS or not isinstance(claims.get("iss"), str):
        raise BadToken
    with hub_wide():  # which tenant it is for, is what is asked
        issuers = list(
            TrustedIssuer.objects.filter(issuer=claims["iss"], audience__in=_audiences(claims), disabled_at=None)[:2]
        )
        if len(issuers) != 1:
            raise BadToken
        issuer = issuers[0]
        # A tenant's own MCP address is asked with tokens that name it, and these are for nothing else.
        of_tenant = is_of_tenant(issuer.audience)
        if (of_tenant or is_of_tenant(resource)) and issuer.audience != resource:
            raise BadToken
        identity = (
            AgentIdentity.objects.select_related("agent")
            .filter(issuer=issuer, subject=str(claims.get("sub", "")), agent__tenant_id=issuer.tenant_id)
            .first()
        )
    if identity is None or identity.agent.disabled_at:
        raise BadToken
    verified = jwt.decode(text, find_signing_key(issuer, header), algorithms=[str(header["alg"])]).claims
    _check_claims(verified, issuer=issuer.issuer, audience=issuer.audience, longest_s=settings.TOOLHUB_TOKEN_LIFETIME_S)
    return Principal(
        kind=ActorKind.AGENT,
        id=identity.agent.wire_id,
        name=identity.agent.name,
        tenant_id=issuer.tenant_id,
        allowed=_scopes(verified, identity.scopes, foreign_words=of_tenant),
        agent_id=identity.agent_id,
        issuer_id=issuer.pk,
        token=token_digest(text, verified),
    )


# Tokens of the hub.


def make_token(key: ApiKey, *, scopes: Iterable[str], resource: str = "") -> str:
    """A token that stands for ``key`` for ten minutes, or for as long as the key works. ``resource``: for this part alone."""
    key_id, secret = get_keystore().derive(PURPOSE)
    now = int(time.time())
    claims = {
        "iss": settings.TOOLHUB_PUBLIC_URL,
        "aud": resource or settings.TOOLHUB_PUBLIC_URL,
        "sub": key.agent.wire_id,
        "client_id": key.wire_id,
        "scope": " ".join(scopes),
        "iat": now,
        "exp": now + HUB_LIFETIME_S,
        "jti": str(new_id()),
    }
    header = {"alg": HUB_ALGORITHM, "typ": "at+jwt", "kid": key_id}
    return jwt.encode(header, claims, OctKey.import_key(secret), algorithms=[HUB_ALGORITHM])


def _of_hub(text: str, header: dict[str, Any], *, resource: str) -> tuple[ApiKey, frozenset[str]]:
    if header.get("alg") != HUB_ALGORITHM or not header.get("kid"):
        raise BadToken
    _, secret = get_keystore().derive(PURPOSE, header["kid"])
    claims = jwt.decode(text, OctKey.import_key(secret), algorithms=[HUB_ALGORITHM]).claims
    granted = str(claims.get("aud", ""))
    if not covers_resource(granted, resource):
        raise BadToken
    _check_claims(claims, issuer=hub_resource(), audience=granted, longest_s=HUB_LIFETIME_S)
    with hub_wide():
        key = ApiKey.objects.select_related("agent").get(pk=decode("key", str(claims.get("client_id", ""))))
    if key.agent.wire_id != claims["sub"]:
        raise BadToken
    return key, _scopes(claims, key.scopes)


def read_token_end(text: str) -> float | None:
    """When a token ends that was found good already, in seconds since 1970; None for what is no token."""
    if not looks_like_token(text):
        return None
    try:
        return float(read_unverified(text)[1]["exp"])
    except (BadToken, ValueError, TypeError, KeyError, OverflowError):
        return None


def read_token(text: str, *, resource: str = "") -> Principal | tuple[ApiKey, frozenset[str]]:
    """The agent that a provider vouches for; or the key for which a token of this hub stands, and the scopes it carries. A token of
    the hub for another ``resource`` is none, and neither is one of a provider whose audience is a tenant's own MCP address.
    """
    try:
        header, claims = read_unverified(text)
        if claims.get("iss") == settings.TOOLHUB_PUBLIC_URL:
            return _of_hub(text, header, resource=resource or hub_resource())
        return _of_issuer(text, header, claims, resource=resource or hub_resource())
    except IssuerUnavailable:
        raise
    except (
        BadToken,
        JoseError,
        KeyUnavailable,
        ApiKey.DoesNotExist,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
    ) as error:
        raise Unauthenticated(NOT_VALID, remedy=REMEDY) from error
