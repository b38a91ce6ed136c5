"""Identity assertions: what an identity provider signs so that a program acts for a person who is shown no page (ID-JAG,
draft-ietf-oauth-identity-assertion-authz-grant; in MCP "enterprise-managed authorization").

The program that shows one says whose tenant it is: assertions name this hub and no tenant. What one is good for is decided where it
opens a connection (:mod:`access.connections.assertions`). A refusal may say what is wrong: who asks has proved which program it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from django.conf import settings
from joserfc import jwt
from joserfc.errors import JoseError

from access.connections.assertions import ASK_AGAIN
from access.connections.resources import find_resource, mcp_resource
from access.connections.token_texts import compute_token_digest
from access.models import AssertionRule
from access.oauth.tokens import ALGORITHMS, MAX_BYTES, SKEW_S, BadToken, find_signing_key, read_unverified, token_digest
from access.problems import AssertionRefused

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import EnteredClient, TrustedIssuer

TYPES = ("oauth-id-jag+jwt", "application/oauth-id-jag+jwt")
LONGEST_S = 5 * 60
MAX_ID = 300
MOST_SECONDS = 10**11
UNTRUSTED = "No identity provider of this tenant may vouch for its people under this issuer."
LET_IT_VOUCH = "Ask an owner of the tenant: they say so on the page of the identity provider."


@dataclass(frozen=True, slots=True)
class IdentityAssertion:
    """One that was found good, but for whether it was shown before. ``scopes``: None where it says nothing. ``once``: digest of what
    names it, which is good for once until ``known_until`` (seconds since 1970). ``digest``: as evidence names tokens.
    """

    issuer: TrustedIssuer
    subject: str
    scopes: frozenset[str] | None
    resource: str
    once: str
    known_until: float
    digest: str


def _is_text(value: Any, *, most: int) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= most


def _find_issuer(name: Any, *, tenant_id: UUID) -> TrustedIssuer:
    rules = AssertionRule.objects.select_related("issuer").filter(
        issuer__tenant_id=tenant_id, issuer__issuer=name, issuer__disabled_at=None
    )
    found = rules.first() if _is_text(name, most=MAX_BYTES) else None
    if found is None:
        raise AssertionRefused(UNTRUSTED, remedy=LET_IT_VOUCH)
    return found.issuer


def _verify(text: str, header: dict[str, Any], issuer: TrustedIssuer) -> dict[str, Any]:
    unsigned = AssertionRefused(
        "The assertion is not signed with a key of its identity provider.",
        remedy="Compare the keys on the page of the identity provider with those that it signs with.",
    )
    if header.get("alg") not in ALGORITHMS:
        raise unsigned
    try:
        return jwt.decode(text, find_signing_key(issuer, header), algorithms=[str(header["alg"])]).claims
    except (BadToken, JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise unsigned from error


def _is_number(value: Any) -> TypeGuard[float]:
    """A time, seconds since 1970; not NaN, and of a size that a float has."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST_SECONDS < value < MOST_SECONDS


def _check_times(claims: dict[str, Any]) -> None:
    now, begins, issued, ends = time.time(), claims.get("nbf", 0), claims.get("iat"), claims.get("exp")
    if not (_is_number(begins) and _is_number(issued) and _is_number(ends)):
        raise AssertionRefused("The assertion does not say when it was made and when it ends (iat, exp).")
    if max(issued, begins) > now + SKEW_S:
        raise AssertionRefused(
            "The assertion is not good yet.", remedy="Compare the clocks of the hub and of the identity provider."
        )
    if ends <= now - SKEW_S:
        raise AssertionRefused("The assertion has expired.", remedy=ASK_AGAIN)
    if ends - issued > LONGEST_S:
        raise AssertionRefused(
            f"The assertion lasts longer than {LONGEST_S // 60} minutes.",
            remedy="Set a shorter lifetime at the identity provider.",
        )


def _check_addressee(claims: dict[str, Any], client_id: str) -> None:
    hub, audience = settings.TOOLHUB_PUBLIC_URL, claims.get("aud")
    if audience not in (hub, [hub]):
        raise AssertionRefused(
            "The assertion is for somebody else.", remedy=f"Its aud is {hub}, and nothing beside it."
        )
    if claims.get("client_id") != client_id:
        raise AssertionRefused(
            "The assertion is for another program.",
            remedy="Its client_id is the one by which this hub knows the program that shows it.",
        )
    resource = claims.get("resource")
    if not isinstance(resource, str) or not resource or find_resource([resource]) != mcp_resource():
        raise AssertionRefused("The assertion is for another resource.", remedy=f"Its resource is {mcp_resource()}.")


def _read_scopes(claims: dict[str, Any]) -> frozenset[str] | None:
    said = claims.get("scope")
    if said is None:
        return None
    if not isinstance(said, str):
        raise AssertionRefused("The scope of the assertion is no text.")
    return frozenset(said.split())


def read_assertion(text: str, *, client: EnteredClient) -> IdentityAssertion:
    """Raises :class:`AssertionRefused`, or :class:`access.problems.IssuerUnavailable` where its keys cannot be had now."""
    try:
        header, claimed = read_unverified(text, types=TYPES)
    except BadToken as error:
        raise AssertionRefused(
            f"This is no identity assertion: a JWT of the type {TYPES[0]} and of at most {MAX_BYTES} bytes.",
            remedy="Show the grant that the identity provider has made for this hub, no ID token and no access token.",
        ) from error
    issuer = _find_issuer(claimed.get("iss"), tenant_id=client.tenant_id)
    claims = _verify(text, header, issuer)
    _check_addressee(claims, client.client_id)
    _check_times(claims)
    subject, named = claims.get("sub"), claims.get("jti")
    if not (_is_text(subject, most=MAX_ID) and _is_text(named, most=MAX_ID)):
        raise AssertionRefused("The assertion does not name its person (sub) and itself (jti).")
    return IdentityAssertion(
        issuer=issuer,
        subject=subject,
        scopes=_read_scopes(claims),
        resource=mcp_resource(),
        once=compute_token_digest(f"id-jag\0{issuer.pk}\0{named}"),
        known_until=claims["exp"] + 2 * SKEW_S,  # by the clock of the database, which may be before ours
        digest=token_digest(text, claims),
    )
