"""Connection rights: what a connection is good for at this moment.

Nothing is copied when it is opened. Whoever opened it must be somebody at each call who may let programs act as the agent, and the
agent must be in use; what the agent itself may do is decided as for all its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef, Q
from guardian.models import GroupObjectPermission, UserObjectPermission

from access.models import Agent, Connection, Membership, Tenant
from kernel.database.connections import database_time
from kernel.database.rows import PreparedQuery, fetch_together
from kernel.database.tenancy import hub_wide
from kernel.database.uuid_text import UUIDText

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet

    from kernel.principal import Principal

CONNECT = "agents.connect"


@dataclass(frozen=True, slots=True)
class ConnectionRights:
    """``tools``: None for all that the agent may call. ``member_id``: who has let the program; 0: nobody."""

    wire_id: str
    in_force: bool
    tools: frozenset[str] | None
    member_id: int = 0


def select_permitted(rows: QuerySet[Connection]) -> QuerySet[Connection]:
    """Those of them whose agent is in use, and whose member still is of the tenant and may let programs act as it, there or on it.

    One statement, however many they are: it is asked with each request of a program and each look at open streams.
    """
    member = OuterRef("member_id")
    of_tenant = {
        "permission__codename": CONNECT,
        "permission__content_type__app_label": Tenant._meta.app_label,
        "permission__content_type__model": Tenant._meta.model_name,
        "object_pk": UUIDText(OuterRef("tenant_id")),
    }
    on_agent = of_tenant | {
        "permission__content_type__model": Agent._meta.model_name,
        "object_pk": UUIDText(OuterRef("agent_id")),
    }
    held = (
        Q(member__is_superuser=True)
        | Exists(GroupObjectPermission.objects.filter(group__user=member, **of_tenant))
        | Exists(UserObjectPermission.objects.filter(user=member, **of_tenant))
        | Exists(UserObjectPermission.objects.filter(user=member, **on_agent))
    )
    belongs = Exists(Membership.objects.filter(tenant_id=OuterRef("tenant_id"), user=member))
    return rows.filter(belongs, held, agent__disabled_at=None, member__is_active=True)


def is_alive(connection: Connection, *, now: datetime) -> bool:
    """By its own row; whether its member still may is asked with :func:`select_permitted`."""
    return connection.ended_at is None and connection.until > now


def is_in_force(connection: Connection, *, now: datetime) -> bool:
    """Alive, its agent in use, and its member still one who may."""
    return is_alive(connection, now=now) and select_permitted(Connection.objects.filter(pk=connection.pk)).exists()


def _of_agent(connection: UUID, tenant: UUID, agent: UUID) -> QuerySet[Connection]:
    return Connection.objects.filter(pk=connection, tenant_id=tenant, agent_id=agent)


_IDS = {"connection": UUID, "tenant": UUID, "agent": UUID}
OF_AGENT = PreparedQuery(_of_agent, **_IDS)
PERMITTED = PreparedQuery(lambda **ids: select_permitted(_of_agent(**ids)), **_IDS)


def find_connection_rights(connection_id: UUID, *, tenant_id: UUID, agent_id: UUID, now: datetime) -> ConnectionRights:
    ids = {"connection": connection_id, "tenant": tenant_id, "agent": agent_id}
    rows, permitted = fetch_together((OF_AGENT, ids), (PERMITTED, ids))
    if not rows:
        return ConnectionRights("", in_force=False, tools=frozenset())
    (found,) = rows
    tools = None if found.tools is None else frozenset(found.tools)
    in_force = bool(permitted) and is_alive(found, now=now)
    return ConnectionRights(found.wire_id, in_force=in_force, tools=tools, member_id=found.member_id)


def find_ended_connections(ids: Iterable[UUID]) -> list[UUID]:
    """Which of them count for nothing by now, or were never there."""
    asked = list(ids)
    with hub_wide():  # of all tenants whose programs are answered at this moment
        rows = select_permitted(Connection.objects.live(database_time()).filter(pk__in=asked))
        good = set(rows.values_list("pk", flat=True))
    return [each for each in asked if each not in good]


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
