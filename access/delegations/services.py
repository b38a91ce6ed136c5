"""Delegations: handing a grant on to another agent, and withdrawing it.

What is handed on is a grant like any other: preflight, budgets, policies and evidence treat it as one. It reaches no further than
the grant that it came from (:mod:`access.grants.attenuation`), and is in force only while everything above it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from access.budgets.services import set_calls_limit
from access.grants.attenuation import RequestedTerms, Terms, attenuate_terms, find_widenings, lasts_longer
from access.grants.services import DAY_S, check_expiry, check_reason, check_terms
from access.models import Agent, Grant
from access.problems import DelegationRefused, DelegationTooWide
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.grants import GivenDelegation, RevokedDelegation
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.problems import Conflict

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from access.models.grants import GrantQuerySet
    from kernel.principal import Principal

SOURCE = "delegation"
MAX_IN_FORCE = 50  # handed on from one grant, and to one agent
MAX_FINDINGS = 20
ASK = "Ask an operator for a grant that may be handed on."


def visible_delegations(by: Principal) -> GrantQuerySet:
    """What the agent has handed on, others have handed on of it, and it was handed."""
    rows = Grant.objects.visible_to(by).exclude(delegated_from=None)
    return rows.filter(Q(agent_id=by.agent()) | Q(pk__in=rows.handed_on_from(agent_id=by.agent()).values("pk")))


def check_can_delegate(grant: Grant, to: Agent) -> None:
    """The grant is in force and may be handed on; the one who gets it is in use, and not one that it came from."""
    if grant.state != "active":
        raise DelegationRefused(f"This grant is {grant.state}.", remedy=ASK)
    if not grant.may_delegate:
        further = " any further" if grant.delegated_from_id else ""
        raise DelegationRefused(f"This grant may not be handed on{further}.", remedy=ASK)
    if to.pk == grant.agent_id:
        raise DelegationRefused("An agent cannot hand a grant on to itself.", remedy="Name another agent.")
    if to.pk in {each.agent_id for each in grant.chain}:
        raise DelegationRefused(
            f"This grant came from {to.name}, and is not handed back to it.", remedy="Name another agent."
        )
    if to.disabled_at:
        raise Conflict(f"The agent {to.name} is disabled.", remedy="Hand the grant to an agent that is in use.")


def check_is_no_wider(grant: Grant, asked: RequestedTerms, *, expires_at: datetime, depth: int) -> None:
    """All that is wider is said at once, each with its place in the ask."""
    findings = find_widenings(build_terms(grant), asked)
    if lasts_longer(expires_at, grant.expires_at):
        assert grant.expires_at is not None
        message = f"The grant itself ends at {grant.expires_at.isoformat()}."
        findings.append({"pointer": "/expires_at", "message": message})
    if depth >= grant.may_delegate:
        left = grant.may_delegate - 1
        message = f"It may be handed on {left} more times after this." if left else "It may not be handed on further."
        findings.append({"pointer": "/depth", "message": message})
    if findings:
        raise DelegationTooWide(
            f"An agent hands on what it holds, or less. {findings[0]['message']} (at {findings[0]['pointer']})",
            details={"grant": grant.wire_id, "findings": findings[:MAX_FINDINGS]},
            remedy="Leave out or narrow what `details.findings` names.",
        )


def build_terms(grant: Grant) -> Terms:
    return Terms(grant.tools, grant.capabilities, grant.scopes, grant.conditions)


def check_has_room(to: Agent) -> None:
    """Whoever is handed grants is not asked, and each of them is looked at with each of its calls."""
    if Grant.objects.filter(agent=to, delegated_from__isnull=False).in_force(database_time()).count() >= MAX_IN_FORCE:
        raise Conflict(
            f"{to.name} has {MAX_IN_FORCE} grants of other agents already.",
            remedy="Have some of them taken back before.",
        )


@transaction.atomic
def delegate_grant(
    *,
    grant_id: UUID,
    to_agent_id: UUID,
    purpose: str,
    expires_at: datetime,
    by: Principal,
    asked: RequestedTerms | None = None,
    depth: int = 0,
    calls_limit: int | None = None,
    window_s: int = DAY_S,
) -> Grant:
    """Give another agent what a grant of this agent allows, or less of it. ``depth``: how often it may be handed on from there."""
    asked = asked or RequestedTerms()
    rows = Grant.objects.select_for_update(of=("self",)).with_chain()
    parent = rows.get(pk=grant_id, tenant_id=by.tenant_id, agent_id=by.agent())
    to = Agent.objects.get(pk=to_agent_id, tenant_id=by.tenant_id)
    check_can_delegate(parent, to)
    check_reason(purpose, "/purpose")
    check_expiry(expires_at)
    check_terms(
        tools=parent.tools if asked.tools is None else asked.tools,
        capabilities=asked.capabilities,
        scopes=asked.scopes,
        conditions=list(asked.conditions),
    )
    check_is_no_wider(parent, asked, expires_at=expires_at, depth=depth)
    terms = attenuate_terms(build_terms(parent), asked)
    check_terms(**terms._asdict())  # its conditions and those that were added may be too many together
    if Grant.objects.filter(delegated_from=parent).in_force(database_time()).count() >= MAX_IN_FORCE:
        raise Conflict(f"This grant is handed on {MAX_IN_FORCE} times already.", remedy="Take some of it back before.")
    check_has_room(to)
    grant = Grant.objects.create(
        tenant_id=by.tenant_id,
        agent=to,
        **terms._asdict(),
        source=SOURCE,
        reason=purpose.strip(),
        given_by=by.id,
        delegated_from=parent,
        may_delegate=depth,
        expires_at=expires_at,
    )
    evidence.record(
        kind=Kind.DELEGATION_GIVEN,
        subject=grant.wire_id,
        actor=by,
        data=GivenDelegation(
            agent=to.wire_id,
            delegated_from=parent.wire_id,
            actors=list_chain_actors(grant),
            **terms._asdict(),
            may_delegate=depth,
            calls_limit=calls_limit,
            window_s=window_s,
            expires_at=expires_at.isoformat(),
            reason=grant.reason,
        ),
    )
    set_calls_limit(grant, calls_limit, window_s=window_s, reason=purpose, by=by)
    return grant


def list_chain_actors(grant: Grant) -> list[dict[str, str]]:
    """Whom a call under this grant is made for, the first of the chain first: as the Begin of such a call says it."""
    return [{"agent": encode("agt", each.agent_id), "grant": each.wire_id} for each in grant.chain if each.agent_id]


@transaction.atomic
def revoke_delegation(*, grant_id: UUID, by: Principal) -> Grant:
    """What was handed on, and all that was handed on from it, stops counting with the next call. By any agent that it came from."""
    rows = Grant.objects.select_for_update(of=("self",)).visible_to(by)
    grant = rows.get(pk=grant_id, pk__in=Grant.objects.handed_on_from(agent_id=by.agent()).values("pk"))
    if grant.revoked_at:
        raise Conflict("This grant is revoked already.")
    grant.revoked_at, grant.revoked_by = timezone.now(), by.id
    grant.save(update_fields=["revoked_at", "revoked_by"])
    evidence.record(
        kind=Kind.DELEGATION_REVOKED,
        subject=grant.wire_id,
        actor=by,
        data=RevokedDelegation(
            agent=encode("agt", grant.agent_id) if grant.agent_id else "", actors=list_chain_actors(grant)
        ),
    )
    return grant
