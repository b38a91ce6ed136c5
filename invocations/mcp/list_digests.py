"""List digests: what each agent's list of tools is by now, in a few bytes.

Two digests differ when `tools/list` would show something else. They are computed for many agents of a tenant at once, by the rules
that make the list itself and with as many statements as for one agent.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from access.connections.rights import ConnectionRights
from access.models import Connection
from invocations.decide.callable_tools import choose_callable, is_of_kind
from invocations.mcp.tool_list import order_tools
from kernel.database.connections import database_time
from kernel.database.tenancy import acting_for
from registry.decision_context import load_contexts_of_agents
from registry.discovery.tool_specs import names_in
from registry.models import ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from kernel.principal import Principal
    from unitools.manifest import Manifest

NOTHING = ""  # of an agent that is not there
LENGTH = 16


class ListOwner(NamedTuple):
    """Whose list it is: an agent's, or what a person has let a program call of it."""

    tenant_id: UUID
    agent_id: UUID
    connection_id: UUID | None = None

    @classmethod
    def of(cls, by: Principal) -> ListOwner:
        return cls(by.tenant_id, by.agent(), by.connection.id if by.connection else None)


class ListDigests(NamedTuple):
    """``changes_at``: when time alone changes one of them, as far as grants say it."""

    digests: dict[ListOwner, str]
    changes_at: datetime | None


def compute_list_digests(tenant_id: UUID, owners: Iterable[ListOwner]) -> ListDigests:
    """Those of one tenant's. That a key or a connection counts at all is asked elsewhere (:mod:`invocations.mcp.open_streams`)."""
    of_agent: dict[UUID, list[ListOwner]] = defaultdict(list)
    for owner in owners:
        of_agent[owner.agent_id].append(owner)
    digests = dict.fromkeys((owner for some in of_agent.values() for owner in some), NOTHING)
    ends: set[datetime] = set()
    with acting_for(tenant_id):
        chosen = _find_chosen_tools(digests)
        now = database_time()
        ids: dict[str, str] | None = None
        for agent_id, found in load_contexts_of_agents(tenant_id=tenant_id, agent_ids=of_agent, now=now):
            contexts = [each for each in found if is_of_kind(each, ToolKind.TOOL)]
            if ids is None:  # the same for all agents
                ids = names_in("mcp", [each.tool for each in contexts])
            if contexts:
                ends |= {grant.expires_at for grant in contexts[0].grants if grant.expires_at is not None}
            for owner in of_agent[agent_id]:
                rights = chosen.get(owner.connection_id)
                asked = contexts if rights is None else [replace(each, connection=rights) for each in contexts]
                digests[owner] = _compute_digest(order_tools(choose_callable(asked)[0], ids))
    return ListDigests(digests, min(ends, default=None))


def _find_chosen_tools(owners: Iterable[ListOwner]) -> dict[UUID | None, ConnectionRights]:
    ids = {owner.connection_id for owner in owners if owner.connection_id is not None}
    rows = Connection.objects.filter(pk__in=ids).values_list("pk", "tools") if ids else ()
    return {
        pk: ConnectionRights("", in_force=True, tools=None if tools is None else frozenset(tools)) for pk, tools in rows
    }


def _compute_digest(listed: Sequence[tuple[str, Manifest]]) -> str:
    """Versions are immutable, so name, id and version say what is shown."""
    text = "\n".join(f"{name} {manifest.id} {manifest.version}" for name, manifest in listed)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]
