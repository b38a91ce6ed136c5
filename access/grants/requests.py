"""Grant requests: how a grant is requested, and answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from access.grants.services import check_terms, give_grant
from access.models import Agent, GrantRequest, RequestState
from access.notifications.services import notify_channels
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.grants import DeclinedGrant, RequestedGrant
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from access.models import Grant

MAX_WAITING = 50  # of one agent


def request_grant(
    *,
    agent_id: UUID,
    tools: str,
    purpose: str,
    by: Principal,
    capabilities: dict[str, Any] | None = None,
    scopes: Sequence[dict[str, str]] | None = None,
    conditions: Sequence[dict[str, Any]] = (),
) -> GrantRequest:
    """Ask an operator for a grant: an agent for itself, a person for any agent of the tenant.

    Asking again for the same tools while the request waits gives the same request back.
    """
    if by.agent_id is not None and by.agent_id != agent_id:
        raise Forbidden("An agent asks for grants for itself only.")
    agent = Agent.objects.get(pk=agent_id, tenant_id=by.tenant_id)
    if agent.disabled_at:
        raise Conflict(f"The agent {agent.name} is disabled.", remedy="Ask for an agent that is in use.")
    check_terms(tools=tools, capabilities=capabilities, scopes=scopes, conditions=list(conditions))
    if not purpose.strip():
        raise SchemaInvalid.at("/purpose", "Say what the tools will be used for; the person who decides reads it.")
    waiting = GrantRequest.objects.filter(agent=agent, state=RequestState.WAITING)
    same = waiting.filter(tools=tools).first()
    if same is not None:
        return same
    if waiting.count() >= MAX_WAITING:
        raise Conflict(
            f"{MAX_WAITING} requests for grants of {agent.name} wait already.",
            remedy="Wait until an operator has answered some of them.",
        )
    try:
        with transaction.atomic():
            asked = GrantRequest.objects.create(
                tenant_id=by.tenant_id,
                agent=agent,
                tools=tools,
                capabilities=capabilities,
                scopes=scopes,
                conditions=list(conditions),
                purpose=purpose.strip(),
                requested_by=by.id,
            )
            evidence.record(
                kind=Kind.GRANT_REQUESTED,
                subject=asked.wire_id,
                actor=by,
                data=RequestedGrant(
                    agent=agent.wire_id,
                    tools=tools,
                    capabilities=capabilities,
                    scopes=scopes,
                    conditions=list(conditions),
                    purpose=asked.purpose,
                ),
            )
            said = {"agent": agent.name, "tool": tools, "url": f"/grants/requests/{asked.wire_id}"}
            notify_channels("grant.requested", subject=asked.wire_id, body=said, tenant_id=by.tenant_id)
            return asked
    except IntegrityError:
        return GrantRequest.objects.filter(agent=agent, tools=tools).latest("pk")  # somebody asked at the same moment


def _locked(request_id: UUID, by: Principal) -> GrantRequest:
    found = GrantRequest.objects.select_for_update(of=("self",)).select_related("agent")
    asked = found.get(pk=request_id, tenant_id=by.tenant_id)
    if by.kind is not ActorKind.USER:
        raise Forbidden("Only a person answers a request for a grant.")
    by.check("grants.give")
    if asked.state != RequestState.WAITING:
        raise Conflict(f"This request is {asked.state} already.", details={"state": asked.state})
    return asked


@transaction.atomic
def approve_request(
    *,
    request_id: UUID,
    reason: str,
    by: Principal,
    tools: str,
    capabilities: dict[str, Any] | None = None,
    scopes: Sequence[dict[str, str]] | None = None,
    conditions: Sequence[dict[str, Any]] = (),
    calls_limit: int | None = None,
    expires_at: datetime | None = None,
) -> Grant:
    """Give the grant that was asked for, with the terms that the operator has settled on."""
    asked = _locked(request_id, by)
    grant = give_grant(
        agent_id=asked.agent_id,
        tools=tools,
        reason=reason,
        by=by,
        capabilities=capabilities,
        scopes=scopes,
        conditions=conditions,
        calls_limit=calls_limit,
        expires_at=expires_at,
        source=asked.wire_id,
    )
    _answer(asked, RequestState.GRANTED, reason=reason, by=by, grant=grant)
    return grant


@transaction.atomic
def decline_request(*, request_id: UUID, reason: str, by: Principal) -> GrantRequest:
    asked = _locked(request_id, by)
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Write why; the reason is kept as evidence.")
    _answer(asked, RequestState.DECLINED, reason=reason, by=by)
    evidence.record(
        kind=Kind.GRANT_DECLINED,
        subject=asked.wire_id,
        actor=by,
        data=DeclinedGrant(agent=asked.agent.wire_id, tools=asked.tools, reason=reason.strip()),
    )
    return asked


def _answer(
    asked: GrantRequest, state: RequestState, *, reason: str, by: Principal, grant: Grant | None = None
) -> None:
    """Part of the grant that is given, whose fact names the request, or of the refusal."""
    asked.state, asked.decided_by, asked.decided_at = state, by.id, timezone.now()
    asked.decision_reason, asked.grant = reason.strip()[:500], grant
    asked.save(update_fields=["state", "decided_by", "decided_at", "decision_reason", "grant"])
