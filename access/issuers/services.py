"""Issuers: whose signed tokens a tenant accepts, and which agents their subjects speak for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from access.agents.services import check_scopes
from access.connections.resources import is_of_tenant, tenant_mcp_resource
from access.connections.services import end_vouched_connections
from access.issuers.jwks import read_keys
from access.models import Agent, AgentIdentity, AssertionRule, Tenant, TrustedIssuer
from access.object_permissions.rules import allowed_on
from access.roles import SCOPES
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.agents import MappedIdentity, TrustedIssuerTerms
from evidence.leaves.reasons import StatedReason
from kernel.database.tenancy import hub_wide
from kernel.http.outbound import AddressRefused, check_url
from kernel.principal import ActorKind
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal

MAX_NAME = 300


def _finding(pointer: str, message: str) -> SchemaInvalid:
    return SchemaInvalid(message, details={"findings": [{"pointer": pointer, "message": message}]})


def usual_audience(tenant_wire_id: str) -> str:
    """What tokens for this tenant should name as their audience, unless the provider cannot be told."""
    return f"{settings.TOOLHUB_PUBLIC_URL}/{tenant_wire_id}"


def find_mcp_issuers(slug: str) -> tuple[UUID, list[str]] | None:
    """The tenant of this short name, and the providers that its own MCP address sends clients to: those whose tokens name it as their
    audience. None where there are none, as for a tenant that is not there.
    """
    with hub_wide():  # nobody is signed in yet
        rows = TrustedIssuer.objects.filter(
            tenant__slug=slug, audience=tenant_mcp_resource(slug), disabled_at=None
        ).order_by("issuer")
        found = list(rows.values_list("tenant_id", "issuer"))
    return (found[0][0], [issuer for _, issuer in found]) if found else None


def _check(*, issuer: str, audience: str, jwks_url: str, jwks: Any, but: UUID | None, tenant: Tenant) -> None:
    if not issuer or len(issuer) > MAX_NAME or not issuer.startswith(("https://", "http://")):
        raise _finding("/issuer", "Give the issuer exactly as its tokens name it: an https:// address.")
    if issuer == settings.TOOLHUB_PUBLIC_URL:
        raise _finding("/issuer", "This hub knows its own tokens already.")
    if not audience or len(audience) > MAX_NAME:
        raise _finding("/audience", "Give the audience that tokens for this tenant name.")
    if is_of_tenant(audience):
        own = tenant_mcp_resource(tenant.slug)
        if audience != own:
            raise _finding("/audience", f"The MCP address of this tenant is {own}, and no other may be the audience.")
    if bool(jwks_url) == bool(jwks):
        raise _finding("/jwks_url", "Say where the issuer's keys are, or paste them; one of the two.")
    if jwks_url:
        try:
            check_url(jwks_url)
        except AddressRefused as refused:
            raise _finding("/jwks_url", str(refused)) from refused
    else:
        try:
            found = read_keys(jwks)
        except ValueError as error:
            raise _finding("/jwks", str(error)) from error
        if not found:
            raise _finding("/jwks", "There is no public RSA, EC or OKP key for signatures in it.")
    with hub_wide():  # a token must lead to one tenant, so no two may want the same ones
        taken = TrustedIssuer.objects.filter(issuer=issuer, audience=audience, disabled_at=None)
        if set(taken.values_list("pk", flat=True)) - {but}:
            raise _finding(
                "/audience", "Tokens of this issuer with this audience are for another tenant. Choose another audience."
            )


def check_speaks_for(agents: Iterable[Agent], *, by: Principal) -> None:
    """Whose tokens count as an agent's acts with all that the agent was granted: for that, one manages it or is it."""
    if by.kind is ActorKind.SYSTEM:
        return
    missing = "agents:manage" if by.kind is ActorKind.AGENT else "agents.manage"
    for agent in agents:
        if by.agent_id != agent.pk and missing not in allowed_on(by, agent):
            raise Forbidden(
                f"Who says whose tokens speak for the agent {agent.name} manages it, and {by.name} does not hold {missing}.",
                remedy="Ask a person who manages the agent to do it.",
                details={"missing": missing},
            )


def _check_mapped(row: TrustedIssuer, *, by: Principal) -> None:
    """Whoever says which keys count could sign tokens of every subject, so they give what is mapped as if they mapped it, and what it
    may vouch for as if they said so.
    """
    mapped, rules = AgentIdentity.objects.filter(issuer=row), AssertionRule.objects.filter(issuer=row)
    scopes = [*mapped.values_list("scopes", flat=True), *rules.values_list("scopes", flat=True)]
    check_scopes(set().union(*scopes) & set(SCOPES), by=by)
    spoken_for = Q(pk__in=mapped.values("agent")) | Q(pk__in=rules.values("agent"))
    check_speaks_for(Agent.objects.filter(spoken_for).order_by("pk"), by=by)


@transaction.atomic
def trust_issuer(
    *, issuer: str, audience: str, by: Principal, jwks_url: str = "", jwks: dict[str, Any] | None = None
) -> TrustedIssuer:
    """Accept this issuer's tokens; one that is not trusted any more is trusted again, with these keys."""
    issuer, audience, jwks_url = issuer.strip(), audience.strip(), jwks_url.strip()
    row = TrustedIssuer.objects.select_for_update().filter(tenant_id=by.tenant_id, issuer=issuer).first()
    if row is not None and row.disabled_at is None:
        raise Conflict("Tokens of this issuer are accepted already.", remedy="Change it, or end the trust first.")
    _check(
        issuer=issuer,
        audience=audience,
        jwks_url=jwks_url,
        jwks=jwks,
        but=None,
        tenant=Tenant.objects.get(pk=by.tenant_id),
    )
    if row is not None:
        _check_mapped(row, by=by)
    values = {
        "audience": audience,
        "jwks_url": jwks_url,
        "jwks": jwks or None,
        "disabled_at": None,
        "created_by": by.id,
    }
    try:
        with transaction.atomic():
            row, _ = TrustedIssuer.objects.update_or_create(tenant_id=by.tenant_id, issuer=issuer, defaults=values)
    except IntegrityError as error:
        raise Conflict("Somebody trusted the same issuer at this moment.") from error
    evidence.record(kind=Kind.ISSUER_TRUSTED, subject=row.wire_id, actor=by, data=_describe_issuer(row))
    return row


def _describe_issuer(row: TrustedIssuer) -> TrustedIssuerTerms:
    return TrustedIssuerTerms(issuer=row.issuer, audience=row.audience, keys=row.jwks_url or "inline")


@transaction.atomic
def change_issuer(
    *, issuer_id: UUID, audience: str, by: Principal, jwks_url: str = "", jwks: dict[str, Any] | None = None
) -> TrustedIssuer:
    """Another audience, or other keys. For whom it has vouched so far is asked anew."""
    row = TrustedIssuer.objects.select_for_update().get(pk=issuer_id, tenant_id=by.tenant_id)
    if row.disabled_at is not None:
        raise Conflict("Tokens of this issuer are refused.", remedy="Trust it again, with the keys that it has now.")
    audience, jwks_url = audience.strip(), jwks_url.strip()
    _check(issuer=row.issuer, audience=audience, jwks_url=jwks_url, jwks=jwks, but=row.pk, tenant=row.tenant)
    _check_mapped(row, by=by)
    row.audience, row.jwks_url, row.jwks = audience, jwks_url, jwks or None
    row.save(update_fields=["audience", "jwks_url", "jwks"])
    end_vouched_connections(row, by=by)
    evidence.record(kind=Kind.ISSUER_CHANGED, subject=row.wire_id, actor=by, data=_describe_issuer(row))
    return row


@transaction.atomic
def distrust_issuer(*, issuer_id: UUID, reason: str, by: Principal) -> TrustedIssuer:
    """Refuse its tokens from the next request on, and end the connections for which it has vouched. What was mapped stays, for when it
    is trusted again.
    """
    row = TrustedIssuer.objects.select_for_update().get(pk=issuer_id, tenant_id=by.tenant_id)
    if row.disabled_at is not None:
        raise Conflict("Tokens of this issuer are refused already.")
    row.disabled_at = timezone.now()
    row.save(update_fields=["disabled_at"])
    end_vouched_connections(row, by=by)
    evidence.record(
        kind=Kind.ISSUER_DISTRUSTED, subject=row.wire_id, actor=by, data=StatedReason(reason=reason.strip())
    )
    return row


@transaction.atomic
def map_identity(
    *, issuer_id: UUID, subject: str, agent_id: UUID, scopes: Iterable[str], by: Principal
) -> AgentIdentity:
    """Let the token subject speak for an agent, with at most these scopes."""
    issuer = TrustedIssuer.objects.get(pk=issuer_id, tenant_id=by.tenant_id)
    agent = Agent.objects.get(pk=agent_id, tenant_id=by.tenant_id)
    if not subject.strip() or len(subject.strip()) > MAX_NAME:
        raise _finding("/subject", "Give the subject exactly as the tokens name it.")
    check_speaks_for([agent], by=by)
    try:
        with transaction.atomic():
            row = AgentIdentity.objects.create(
                issuer=issuer, subject=subject.strip(), agent=agent, scopes=check_scopes(scopes, by=by)
            )
    except IntegrityError as error:
        raise Conflict("This subject speaks for an agent already.", remedy="Remove the other one first.") from error
    evidence.record(
        kind=Kind.IDENTITY_MAPPED,
        subject=issuer.wire_id,
        actor=by,
        data=MappedIdentity(identity=str(row.pk), agent=agent.wire_id, scopes=row.scopes),
    )
    return row


@transaction.atomic
def unmap_identity(*, identity_id: UUID, by: Principal) -> None:
    row = AgentIdentity.objects.select_related("issuer", "agent").get(pk=identity_id, issuer__tenant_id=by.tenant_id)
    row.delete()
    evidence.record(
        kind=Kind.IDENTITY_UNMAPPED,
        subject=row.issuer.wire_id,
        actor=by,
        data=MappedIdentity(identity=str(identity_id), agent=row.agent.wire_id),
    )
