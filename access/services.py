"""How do people and agents come to be, and what are agents given?

Grants, agents, keys and memberships. Consents have their own module (:mod:`access.consents`).
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils import timezone
from guardian.shortcuts import assign_perm

from access import keys
from access.capabilities import Capabilities
from access.models import Agent, ApiKey, Grant, Membership, Tenant
from access.problems import SelfApproval
from access.roles import AGENT_SCOPES, ROLE_PERMISSIONS, SCOPES, Role
from evidence import services as evidence
from evidence.kinds import Kind
from toolhub.kernel.canonical import encoded
from toolhub.kernel.ids import encode
from toolhub.kernel.principal import Principal
from toolhub.kernel.problems import Conflict, SchemaInvalid
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

TOOL_PATTERN = re.compile(r"\*|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?\.\*|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){2}")
KEY_LIFETIME = timedelta(days=90)
MAX_BOUNDS_BYTES = 8192


def _finding(pointer: str, message: str) -> SchemaInvalid:
    return SchemaInvalid(message, details={"findings": [{"pointer": pointer, "message": message}]})


@transaction.atomic
def create_tenant(*, slug: str, name: str) -> Tenant:
    """A tenant with the groups of its roles. The first write of a hub, so nobody is there yet to do it."""
    tenant = Tenant.objects.create(slug=slug, name=name)
    for role, permissions in ROLE_PERMISSIONS.items():
        group, _ = Group.objects.get_or_create(name=group_name(tenant, Role(role)))
        for permission in sorted(permissions):
            assign_perm(f"access.{permission}", group, tenant)
    evidence.record(
        kind=Kind.TENANT_CREATED,
        subject=tenant.wire_id,
        actor=Principal.system("setup", tenant_id=tenant.pk),
        data={"slug": slug},
    )
    return tenant


def group_name(tenant: Tenant, role: Role) -> str:
    return f"{tenant.wire_id}:{role}"


@transaction.atomic
def give_membership(*, tenant: Tenant, user: Any, role: Role, by: Principal) -> Membership:
    """Let a person act in a role. Giving the same role twice changes nothing."""
    membership, created = Membership.objects.get_or_create(tenant=tenant, user=user, role=role)
    if created:
        user.groups.add(Group.objects.get(name=group_name(tenant, role)))
        evidence.record(kind=Kind.MEMBERSHIP_GIVEN, subject=f"usr_{user.pk}", actor=by, data={"role": str(role)})
    return membership


@transaction.atomic
def create_agent(*, name: str, by: Principal) -> Agent:
    try:
        with transaction.atomic():
            agent = Agent.objects.create(tenant_id=by.tenant_id, name=name)
    except IntegrityError as error:
        raise Conflict(f"There is an agent with the name {name} already.") from error
    evidence.record(kind=Kind.AGENT_CREATED, subject=agent.wire_id, actor=by, data={"name": name})
    return agent


@transaction.atomic
def create_key(
    *, agent: Agent, by: Principal, scopes: tuple[str, ...] = AGENT_SCOPES, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown this once and not stored."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise _finding("/scopes", f"There is no scope {unknown[0]}. The scopes are {', '.join(SCOPES)}.")
    key = keys.new_key()
    row = ApiKey.objects.create(
        agent=agent,
        lookup=key.lookup,
        digest=key.digest,
        scopes=list(scopes),
        expires_at=expires_at or timezone.now() + KEY_LIFETIME,
        created_by=by.id,
    )
    evidence.record(
        kind=Kind.KEY_CREATED,
        subject=row.wire_id,
        actor=by,
        data={
            "agent": agent.wire_id,
            "lookup": key.lookup,
            "scopes": list(scopes),
            "expires_at": row.expires_at.isoformat(),
        },
    )
    return row, key.text


@transaction.atomic
def revoke_key(*, key_id: UUID, by: Principal) -> ApiKey:
    key = ApiKey.objects.select_for_update().get(pk=key_id, agent__tenant_id=by.tenant_id)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        evidence.record(kind=Kind.KEY_REVOKED, subject=key.wire_id, actor=by)
    return key


@lru_cache(maxsize=1)
def _bounds_validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(manifest_schema()["properties"]["capabilities"])


def _check_bounds(capabilities: Any) -> None:
    """Bounds have the form that capabilities have in a manifest, and fit into the fact that says that they were given."""
    error = next(_bounds_validator().iter_errors(capabilities), None)
    if error is not None:
        place = "".join(f"/{part}" for part in error.instance_path)
        raise _finding(
            "/capabilities", f"These capability bounds cannot be read: {error.message[:300]} (at {place or '/'})"
        )
    try:
        Capabilities.from_json(capabilities)
    except ValueError as wrong:
        raise _finding("/capabilities", f"These capability bounds cannot be read: {wrong}") from wrong
    if len(encoded(capabilities)[1]) > MAX_BOUNDS_BYTES:
        raise _finding("/capabilities", f"These capability bounds have more than {MAX_BOUNDS_BYTES:,} bytes as JSON.")


@transaction.atomic
def give_grant(
    *,
    agent_id: UUID,
    tools: str,
    reason: str,
    by: Principal,
    capabilities: dict[str, Any] | None = None,
    calls_limit: int | None = None,
    window_s: int = 24 * 60 * 60,
    expires_at: datetime | None = None,
) -> Grant:
    """Let an agent call the tools that ``tools`` names: one id, ``group.package.*``, ``group.*`` or ``*``."""
    agent = Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    if by.agent_id == agent.pk:
        raise SelfApproval("An agent cannot give itself a grant.", remedy="Ask an operator to give it.")
    if agent.disabled_at:
        raise Conflict(f"The agent {agent.name} is disabled.", remedy="Give the grant to an agent that is in use.")
    if not TOOL_PATTERN.fullmatch(tools):
        raise _finding(
            "/tools", "Name one tool (group.package.name), a family (group.package.* or group.*), or * for all."
        )
    if not reason.strip():
        raise _finding("/reason", "Say why the agent gets this grant; the reason is kept as evidence.")
    if expires_at is not None and expires_at <= timezone.now():
        raise _finding("/expires_at", "The grant would have expired already.")
    if capabilities is not None:
        _check_bounds(capabilities)
    grant = Grant.objects.create(
        tenant_id=by.tenant_id,
        agent=agent,
        tools=tools,
        capabilities=capabilities,
        calls_limit=calls_limit,
        window_s=window_s,
        reason=reason.strip(),
        given_by=by.id,
        expires_at=expires_at,
    )
    evidence.record(
        kind=Kind.GRANT_GIVEN,
        subject=grant.wire_id,
        actor=by,
        data={
            "agent": agent.wire_id,
            "tools": tools,
            "calls_limit": calls_limit,
            "window_s": window_s,
            "capabilities": capabilities,
            "expires_at": expires_at.isoformat() if expires_at else None,
            "reason": grant.reason,
        },
    )
    return grant


@transaction.atomic
def revoke_grant(*, grant_id: UUID, reason: str, by: Principal) -> Grant:
    """Take a grant back; it stops counting with the next call."""
    grant = Grant.objects.select_for_update().get(pk=grant_id, tenant_id=by.tenant_id)
    if grant.revoked_at:
        raise Conflict("This grant is revoked already.")
    grant.revoked_at, grant.revoked_by = timezone.now(), by.id
    grant.save(update_fields=["revoked_at", "revoked_by"])
    evidence.record(
        kind=Kind.GRANT_REVOKED,
        subject=grant.wire_id,
        actor=by,
        data={"reason": reason.strip(), "agent": encode("agt", grant.agent_id)},
    )
    return grant
