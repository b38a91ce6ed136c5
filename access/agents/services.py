"""Agents and their keys: how they are created, and how they end.

A key carries scopes, an expiry and, if somebody says so, the networks it may be used from. It is replaced by rotation: both
keys work until the old one's overlap ends, and there are never more than two.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from access.agents import api_keys
from access.models import Agent, ApiKey
from access.roles import AGENT_SCOPES, SCOPE_NEEDS, SCOPES
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.agents import CreatedAgent, CreatedKey, RotatedKey
from evidence.leaves.reasons import StatedReason
from evidence.search.name_resolution import AGENTS
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.principal import ActorKind
from kernel.problems import Conflict, Forbidden, SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from kernel.principal import Principal

KEY_LIFETIME = timedelta(days=90)
MAX_LIFETIME = timedelta(days=366)
OVERLAP = timedelta(days=7)
MAX_OVERLAP = timedelta(days=30)
MAX_NETWORKS = 32
MAX_NAMED = 100  # agents that one word of a search may stand for


@transaction.atomic
def create_agent(*, name: str, by: Principal) -> Agent:
    if not name.strip() or len(name.strip()) > 80:
        raise SchemaInvalid.at("/name", "Give the agent a name of at most 80 characters.")
    if not name.strip().isprintable():
        raise SchemaInvalid.at("/name", "The name holds a character that nobody sees, such as a line feed. Remove it.")
    try:
        with transaction.atomic():
            agent = Agent.objects.create(tenant_id=by.tenant_id, name=name.strip())
    except IntegrityError as error:
        raise Conflict(f"There is an agent with the name {name} already.") from error
    evidence.record(kind=Kind.AGENT_CREATED, subject=agent.wire_id, actor=by, data=CreatedAgent(name=agent.name))
    return agent


@transaction.atomic
def disable_agent(*, agent_id: UUID, reason: str, by: Principal) -> Agent:
    """Refuse everything the agent sends from its next request on, whatever credential it carries. Its keys stay as they are."""
    agent = Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    if agent.disabled_at:
        raise Conflict(f"The agent {agent.name} is disabled already.")
    agent.disabled_at = timezone.now()
    agent.save(update_fields=["disabled_at"])
    evidence.record(kind=Kind.AGENT_DISABLED, subject=agent.wire_id, actor=by, data=StatedReason(reason=reason.strip()))
    return agent


@transaction.atomic
def enable_agent(*, agent_id: UUID, reason: str, by: Principal) -> Agent:
    agent = Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    if agent.disabled_at is None:
        raise Conflict(f"The agent {agent.name} is in use already.")
    if by.agent_id == agent.pk:
        raise Forbidden("An agent cannot enable itself.")
    agent.disabled_at = None
    agent.save(update_fields=["disabled_at"])
    evidence.record(kind=Kind.AGENT_ENABLED, subject=agent.wire_id, actor=by, data=StatedReason(reason=reason.strip()))
    return agent


def check_scopes(scopes: Iterable[str], *, by: Principal) -> list[str]:
    """Scopes that exist; an agent gives no other than it holds itself, and a person none for what they may not do."""
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        raise SchemaInvalid.at("/scopes", f"There is no scope {unknown[0]}. The scopes are {', '.join(SCOPES)}.")
    beyond = [scope for scope in wanted if by.kind is ActorKind.AGENT and not by.may(scope)]
    if beyond:
        raise Forbidden(
            f"An agent gives only scopes that it holds, and {by.name} does not hold {beyond[0]}.",
            remedy="Ask a person who manages agents to make the key.",
            details={"missing": beyond[0]},
        )
    needed = [SCOPE_NEEDS[scope] for scope in wanted if by.kind is ActorKind.USER and scope in SCOPE_NEEDS]
    lacking = [permission for permission in needed if not by.may(permission)]
    if lacking:
        raise Forbidden(
            f"A person gives only scopes for what they may do, and {by.name} does not hold {lacking[0]}.",
            remedy="Leave the scope out, or ask an owner of the tenant to do it.",
            details={"missing": lacking[0]},
        )
    return [scope for scope in SCOPES if scope in wanted]


def check_networks(networks: Iterable[str]) -> list[str]:
    """CIDRs, written in one way. None means from anywhere."""
    found = []
    for text in networks:
        try:
            found.append(str(ip_network(text.strip(), strict=False)))
        except ValueError as error:
            raise SchemaInvalid.at("/networks", f"{text[:60]} is not a network, such as 192.0.2.0/24.") from error
    if len(found) > MAX_NETWORKS:
        raise SchemaInvalid.at("/networks", f"A key has at most {MAX_NETWORKS} networks.")
    return sorted(set(found))


def _check_expiry(expires_at: datetime | None) -> datetime:
    now = database_time()
    if expires_at is None:
        return now + KEY_LIFETIME
    if expires_at <= now:
        raise StateUnfit.at("/expires_at", "The key would have expired already.")
    if expires_at > now + MAX_LIFETIME:
        raise SchemaInvalid.at("/expires_at", "A key works for at most a year. Rotate it before.")
    return expires_at


@transaction.atomic
def create_key(
    *,
    agent: Agent,
    by: Principal,
    scopes: Iterable[str] = AGENT_SCOPES,
    expires_at: datetime | None = None,
    name: str = "",
    networks: Iterable[str] = (),
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown this once and not stored."""
    if agent.tenant_id != by.tenant_id:
        raise Agent.DoesNotExist
    row, text = _make_key(
        agent=agent,
        by=by,
        scopes=check_scopes(scopes, by=by),
        expires_at=_check_expiry(expires_at),
        name=name.strip()[:80],
        networks=check_networks(networks),
    )
    evidence.record(kind=Kind.KEY_CREATED, subject=row.wire_id, actor=by, data=CreatedKey(**_describe_key(row)))
    return row, text


def _make_key(
    *,
    agent: Agent,
    by: Principal,
    scopes: list[str],
    expires_at: datetime,
    name: str,
    networks: list[str],
    replaces: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    key = api_keys.new_key()
    row = ApiKey.objects.create(
        agent=agent,
        name=name,
        lookup=key.lookup,
        digest=key.digest,
        scopes=scopes,
        networks=networks,
        expires_at=expires_at,
        replaces=replaces,
        created_by=by.id,
    )
    return row, key.text


def _describe_key(row: ApiKey) -> dict[str, Any]:
    return {
        "agent": row.agent.wire_id,
        "lookup": row.lookup,
        "scopes": row.scopes,
        "networks": row.networks,
        "expires_at": row.expires_at.isoformat(),
    }


def is_live(key: ApiKey) -> bool:
    return key.revoked_at is None and key.expires_at > database_time()


@transaction.atomic
def rotate_key(*, key_id: UUID, by: Principal, overlap: timedelta = OVERLAP) -> tuple[ApiKey, str]:
    """A key that takes over from this one: same agent, scopes and networks. Both work until ``overlap`` has passed."""
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise SchemaInvalid.at("/overlap_s", f"Both keys may work for at most {MAX_OVERLAP.days} days.")
    old = (
        ApiKey.objects.select_for_update(of=("self",))
        .select_related("agent")
        .get(pk=key_id, agent__tenant_id=by.tenant_id)
    )
    if not is_live(old):
        raise Conflict("This key does not work any more.", remedy="Make a new key.")
    newer = [each for each in ApiKey.objects.filter(replaces=old) if is_live(each)]
    if newer:
        raise Conflict(
            f"This key is being replaced by {newer[0].lookup}… already.", remedy="Revoke one of the two, or wait."
        )
    if old.replaces is not None and is_live(old.replaces):
        raise Conflict(
            f"This key still shares its work with {old.replaces.lookup}…, which it replaces.",
            remedy="Revoke the older key first: at most two work at a time.",
        )
    row, text = _make_key(
        agent=old.agent,
        by=by,
        scopes=check_scopes(old.scopes, by=by),
        expires_at=database_time() + (old.expires_at - old.created_at),
        name=old.name,
        networks=old.networks,
        replaces=old,
    )
    old.expires_at = min(old.expires_at, database_time() + overlap)
    old.save(update_fields=["expires_at"])
    evidence.record(
        kind=Kind.KEY_ROTATED,
        subject=old.wire_id,
        actor=by,
        data=RotatedKey(**_describe_key(row), replaced_by=row.wire_id, works_until=old.expires_at.isoformat()),
    )
    return row, text


@transaction.atomic
def revoke_key(*, key_id: UUID, by: Principal, reason: str = "") -> ApiKey:
    key = ApiKey.objects.select_for_update(of=("self",)).get(pk=key_id, agent__tenant_id=by.tenant_id)
    if key.revoked_at is None:
        key.revoked_at, key.revoked_by = timezone.now(), by.id
        key.save(update_fields=["revoked_at", "revoked_by"])
        said = StatedReason(reason=reason.strip()) if reason.strip() else None
        evidence.record(kind=Kind.KEY_REVOKED, subject=key.wire_id, actor=by, data=said)
    return key


def find_agent_ids(tenant_id: UUID, name: str, starts: bool) -> list[str]:
    """For the search of facts, which hold ids: the agents of that name, or whose name begins with it."""
    condition = {"name__istartswith" if starts else "name__iexact": name}
    rows = Agent.objects.filter(tenant_id=tenant_id, **condition).order_by("pk")[:MAX_NAMED]
    return [encode("agt", id) for id in rows.values_list("pk", flat=True)]


AGENTS.append(find_agent_ids)
