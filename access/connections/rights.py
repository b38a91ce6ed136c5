"""Connection rights: what a connection is good for at this moment.

Nothing is copied when it is opened. Whoever opened it must be somebody at each call who may let programs act as the agent, and the
agent must be in use; what the agent itself may do is decided as for all its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from guardian.models import UserObjectPermission

from access.middleware import principal_of_user
from access.models import Agent, Connection, Membership
from access.object_permissions.rules import allowed_on
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal

CONNECT = "agents.connect"


@dataclass(frozen=True, slots=True)
class ConnectionRights:
    """``tools``: None for all that the agent may call."""

    wire_id: str
    in_force: bool
    tools: frozenset[str] | None


def may_connect(member: Any, agent: Agent) -> bool:
    """Whether a person may let programs act as the agent now: they are of its tenant, and hold the permission there or on it."""
    if not member.is_active or not Membership.objects.filter(tenant_id=agent.tenant_id, user=member).exists():
        return False
    return CONNECT in allowed_on(principal_of_user(member, agent.tenant), agent)


def is_in_force(connection: Connection, *, now: datetime) -> bool:
    """Alive, its agent in use, and its member still one who may."""
    return (
        connection.ended_at is None
        and connection.until > now
        and connection.agent.disabled_at is None
        and may_connect(connection.member, connection.agent)
    )


def find_connection_rights(connection_id: UUID, *, tenant_id: UUID, agent_id: UUID, now: datetime) -> ConnectionRights:
    found = (
        Connection.objects.select_related("agent__tenant", "member")
        .filter(pk=connection_id, tenant_id=tenant_id, agent_id=agent_id)
        .first()
    )
    if found is None:
        return ConnectionRights("", in_force=False, tools=frozenset())
    tools = None if found.tools is None else frozenset(found.tools)
    return ConnectionRights(found.wire_id, in_force=is_in_force(found, now=now), tools=tools)


def find_ended_connections(ids: Iterable[UUID]) -> list[UUID]:
    """Which of them are over by now, or were never there."""
    asked = list(ids)
    with hub_wide():  # of all tenants whose programs are answered at this moment
        live = set(Connection.objects.live(database_time()).filter(pk__in=asked).values_list("pk", flat=True))
    return [each for each in asked if each not in live]


def list_connectable_agents(by: Principal) -> QuerySet[Agent]:
    """The agents as which this person may let programs act."""
    agents = Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).select_related("tenant").order_by("name")
    if by.may(CONNECT):
        return agents
    rows = UserObjectPermission.objects.filter(
        user_id=by.id.removeprefix("usr_"),
        permission__content_type=ContentType.objects.get_for_model(Agent),
        permission__codename=CONNECT,
    )
    return agents.filter(pk__in=list(rows.values_list("object_pk", flat=True)))
