"""Grants: how an agent gets one, and how it ends.

Which of an agent's grants let a call through is a question of its own: :mod:`access.grants.matcher`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from django.db import transaction
from django.utils import timezone

from access.budgets.services import set_calls_limit
from access.grants.attenuation import lasts_longer
from access.grants.conditions import validate_conditions
from access.models import Agent, Grant
from access.models.grants import MAX_DEPTH
from access.problems import SelfApproval
from access.separation_of_duties import are_of_one_chain
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.grants import ExtendedGrant, GivenGrant, RevokedGrant
from kernel.canonical import encode_hash_input
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.problems import Conflict, SchemaInvalid, StateUnfit
from unitools import expressions
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from kernel.principal import Principal

DAY_S = 24 * 60 * 60
MAX_BOUNDS_BYTES = 8192
MAX_SCOPES, MAX_SCOPES_BYTES = 50, 1024
MAX_AT_ONCE = 200
# The scopes of a grant as JSON Schema: like a manifest's, but a resource may be a whole kind of things, and an action any.
SCOPE_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["resource", "action"],
    "properties": {
        "resource": {"type": "string", "pattern": "^soul:([a-z]+:.*)?$", "maxLength": 400},
        "action": {"type": "string", "pattern": r"^([a-z_]{1,40}|\*)$"},
    },
}
SCOPES_SCHEMA = {"type": "array", "maxItems": MAX_SCOPES, "items": SCOPE_SCHEMA}


# What a grant may say.


@lru_cache(maxsize=1)
def _scopes_validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(SCOPES_SCHEMA)


def _check_size(of: str, what: str, value: Any, limit: int) -> None:
    if len(encode_hash_input(value)[1]) > limit:
        raise SchemaInvalid.at(f"/{of}", f"These {what} have more than {limit:,} bytes as JSON.")


def _check_scopes(scopes: Any) -> None:
    error = next(_scopes_validator().iter_errors(scopes), None)
    if error is not None:
        place = "".join(f"/{part}" for part in error.instance_path)
        raise SchemaInvalid.at("/scopes", f"These scopes cannot be read: {error.message[:300]} (at {place or '/'})")
    _check_size("scopes", "scopes", scopes, MAX_SCOPES_BYTES)


def check_bounds(capabilities: Any) -> None:
    """Bounds have the form that capabilities have in a manifest, or name secrets and ceilings as well, and fit into the fact that
    says that they were given."""
    try:
        Capabilities.from_json(capabilities)
    except ValueError as wrong:
        raise SchemaInvalid.at("/capabilities", f"These capability bounds cannot be read: {wrong}") from wrong
    _check_size("capabilities", "capability bounds", capabilities, MAX_BOUNDS_BYTES)


def check_terms(*, tools: str, capabilities: Any, scopes: Any, conditions: Any) -> None:
    """What a grant, or a request for one, says can be read and means something."""
    try:
        expressions.parse(tools)
    except ValueError as wrong:
        raise SchemaInvalid.at("/tools", str(wrong)) from wrong
    if capabilities is not None:
        check_bounds(capabilities)
    if scopes is not None:
        _check_scopes(scopes)
    findings = validate_conditions(conditions)
    if findings:
        findings = [{**each, "pointer": f"/conditions{each['pointer']}"} for each in findings]
        raise SchemaInvalid(findings[0]["message"], details={"findings": findings})


def check_reason(reason: str, place: str = "/reason") -> None:
    if not reason.strip():
        raise SchemaInvalid.at(place, "Say why the agent gets this grant; the reason is kept as evidence.")


def check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= database_time():
        raise StateUnfit.at("/expires_at", "The grant would have expired already.")


def check_may_delegate(depth: int, agent: Agent | None) -> None:
    """A grant is handed on by the one agent that holds it, and through few hands."""
    if not 0 <= depth <= MAX_DEPTH:
        raise SchemaInvalid.at(
            "/may_delegate", f"A grant may be handed on 0 to {MAX_DEPTH} times, one after the other."
        )
    if depth and agent is None:
        raise SchemaInvalid.at("/may_delegate", "What every agent holds already is not handed on.")


def check_can_grant_to(agent: Agent | None, *, by: Principal) -> None:
    """Nobody gives to oneself, no agent to one that it made or that made it, and nobody to an agent that is out of use."""
    if by.agent_id is not None and (agent is None or by.agent_id == agent.pk):
        raise SelfApproval("An agent cannot give itself a grant.", remedy="Ask an operator to give it.")
    if by.agent_id is not None and agent is not None and are_of_one_chain(by.agent_id, agent.pk):
        raise SelfApproval(
            "An agent cannot give a grant to an agent that it made or that made it.",
            remedy="Ask an operator to give it.",
        )
    if agent is not None and agent.disabled_at:
        raise Conflict(f"The agent {agent.name} is disabled.", remedy="Give the grant to an agent that is in use.")


# Giving, extending, taking back.


@transaction.atomic
def give_grant(
    *,
    agent_id: UUID | None,
    tools: str,
    reason: str,
    by: Principal,
    capabilities: dict[str, Any] | None = None,
    scopes: Sequence[dict[str, str]] | None = None,
    conditions: Sequence[dict[str, Any]] = (),
    calls_limit: int | None = None,
    window_s: int = DAY_S,
    expires_at: datetime | None = None,
    may_delegate: int = 0,
    source: str = "console",
) -> Grant:
    """Let an agent, or every agent of the tenant, call the tools that the expression ``tools`` names."""
    agent = None if agent_id is None else Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    check_can_grant_to(agent, by=by)
    check_terms(tools=tools, capabilities=capabilities, scopes=scopes, conditions=list(conditions))
    check_may_delegate(may_delegate, agent)
    check_reason(reason)
    check_expiry(expires_at)
    grant = Grant.objects.create(
        tenant_id=by.tenant_id,
        agent=agent,
        tools=tools,
        capabilities=capabilities,
        scopes=scopes,
        conditions=list(conditions),
        source=source,
        reason=reason.strip(),
        given_by=by.id,
        expires_at=expires_at,
        may_delegate=may_delegate,
    )
    evidence.record(
        kind=Kind.GRANT_GIVEN,
        subject=grant.wire_id,
        actor=by,
        data=GivenGrant(
            agent=agent.wire_id if agent else "*",
            tools=tools,
            calls_limit=calls_limit,
            window_s=window_s,
            capabilities=capabilities,
            scopes=scopes,
            conditions=list(conditions),
            may_delegate=may_delegate,
            expires_at=expires_at.isoformat() if expires_at else None,
            source=source,
            reason=grant.reason,
        ),
    )
    set_calls_limit(grant, calls_limit, window_s=window_s, reason=reason, by=by)
    return grant


def _locked(grant_id: UUID, by: Principal) -> Grant:
    return Grant.objects.select_for_update(of=("self",)).with_chain().get(pk=grant_id, tenant_id=by.tenant_id)


def _agent_of(grant: Grant) -> str:
    return encode("agt", grant.agent_id) if grant.agent_id else "*"


@transaction.atomic
def extend_grant(*, grant_id: UUID, expires_at: datetime | None, reason: str, by: Principal) -> Grant:
    """Let a grant that is in force hold longer; None: until it is revoked."""
    grant = _locked(grant_id, by)
    check_can_grant_to(grant.agent, by=by)
    if grant.state != "active":
        raise Conflict(f"This grant is {grant.state}.", remedy="Give a new grant.")
    check_reason(reason)
    if grant.expires_at is None or (expires_at is not None and expires_at <= grant.expires_at):
        raise StateUnfit.at("/expires_at", "The grant holds at least as long already.")
    above = grant.delegated_from
    if above and (expires_at is None or lasts_longer(expires_at, above.expires_at)):
        message = "What was handed on ends at some time, and no later than the grant that it came from."
        raise SchemaInvalid.at("/expires_at", message)
    before, grant.expires_at = grant.expires_at, expires_at
    grant.save(update_fields=["expires_at"])
    evidence.record(
        kind=Kind.GRANT_EXTENDED,
        subject=grant.wire_id,
        actor=by,
        data=ExtendedGrant(
            agent=_agent_of(grant),
            before=before.isoformat(),
            expires_at=expires_at.isoformat() if expires_at else None,
            reason=reason.strip(),
        ),
    )
    return grant


@transaction.atomic
def revoke_grant(*, grant_id: UUID, reason: str, by: Principal) -> Grant:
    """Take a grant back; it stops counting with the next call."""
    grant = _locked(grant_id, by)
    if grant.revoked_at:
        raise Conflict("This grant is revoked already.")
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Say why the grant is taken back; the reason is kept as evidence.")
    grant.revoked_at, grant.revoked_by = timezone.now(), by.id
    grant.save(update_fields=["revoked_at", "revoked_by"])
    evidence.record(
        kind=Kind.GRANT_REVOKED,
        subject=grant.wire_id,
        actor=by,
        data=RevokedGrant(reason=reason.strip(), agent=_agent_of(grant)),
    )
    return grant


@transaction.atomic
def revoke_grants(*, grant_ids: Sequence[UUID], reason: str, by: Principal) -> int:
    """Take several grants back at once, all or none; how many."""
    if not 0 < len(set(grant_ids)) <= MAX_AT_ONCE:
        raise SchemaInvalid.at("/grants", f"Choose 1 to {MAX_AT_ONCE} grants.")
    return len([revoke_grant(grant_id=each, reason=reason, by=by) for each in sorted(set(grant_ids))])
