"""Callers of tries: as which agent a person may try a tool.

As the playground's, or as one for which they may let a program act: by the console they do what such a program could do for them.
What the agent itself may do is decided as for all its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from access.connections.rights import list_connectable_agents
from access.connections.services import check_may_connect
from access.models import Agent
from invocations.playground.services import check_in_use, find_playground
from kernel.ids import decode
from kernel.principal import ActorKind, Principal
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

SCOPES = frozenset({"invocations:create", "invocations:read"})
MOST_OFFERED = 200


@dataclass(frozen=True, slots=True)
class TryCaller:
    """``id``: of its agent, on the wire."""

    id: str
    label: str


def list_callers(by: Principal) -> list[TryCaller]:
    """The playground's first, then the others by name."""
    playground = find_playground(by.tenant_id)
    of_playground = playground.agent if playground is not None else None
    found = []
    if of_playground is not None and of_playground.disabled_at is None:
        label = gettext("%(agent)s, of the playground") % {"agent": of_playground.name}
        found.append(TryCaller(of_playground.wire_id, label))
    agents = list_connectable_agents(by)[:MOST_OFFERED]
    others = [agent for agent in agents if of_playground is None or agent.pk != of_playground.pk]
    return [*found, *(TryCaller(agent.wire_id, agent.name) for agent in others)]


def build_caller(wire_id: str, *, by: Principal) -> Principal:
    """The agent, as which this person may make calls from a page; raises for any other."""
    agent = Agent.objects.filter(tenant_id=by.tenant_id, pk=_read_id(wire_id)).first()
    if agent is None:
        raise SchemaInvalid.at("/caller", "Choose an agent of this list.")
    playground = find_playground(by.tenant_id)
    if playground is not None and playground.agent_id == agent.pk:
        check_in_use(playground)
    else:
        check_may_connect(agent, by=by)
    return Principal(
        kind=ActorKind.AGENT,
        id=agent.wire_id,
        name=agent.name,
        tenant_id=agent.tenant_id,
        allowed=SCOPES,
        agent_id=agent.pk,
    )


def _read_id(wire_id: str) -> UUID:
    try:
        return decode("agt", wire_id)
    except ValueError as error:
        raise SchemaInvalid.at("/caller", "Choose an agent of this list.") from error
