"""Decision context: what decides about an agent and a tool, right now.

:func:`load_decision_context` reads all of it with one prepared statement: key, agent, kill switches, the installation with its tool
and version, grants, consents, budgets and the policies in force. Nothing of it is kept between calls, so what somebody took
back counts with the next one. Only what never changes is cached, by its id: manifests, compiled schemas and policies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from access.connections.rights import find_connection_rights
from access.models import Reach
from access.policies.cache import compiled_policy
from access.policies.compiler import BUILTIN, CompiledPolicy
from kernel.database.connections import database_time
from kernel.ids import encode
from registry.decision_rows import (
    AgentRow,
    GrantedAgentRow,
    HaltValue,
    InstalledTool,
    NamedInstallationRow,
    PolicyRow,
    read_budget,
    read_consent,
    read_grant,
    read_halt,
    read_id,
    read_installation,
)
from registry.decision_statement import fetch_agents_row, fetch_call_row, fetch_tenant_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from uuid import UUID

    from access.budgets.lines import BudgetLine
    from access.connections.rights import ConnectionRights
    from access.consents.matcher import ConsentValue
    from access.grants.matcher import GrantValue
    from registry.decision_rows import CallRow

NO_AGENT = AgentRow(name="", disabled_at="never was", key_revoked=False, key_lasts=None)


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """``layers``: the policies that the call needs to pass, the hub's first. ``key_in_force``: None when no key was asked about.
    ``connection``: of the program that calls, where a person has let it.
    ``lines`` are those of every grant; take the ones of the chosen grant (access.budgets.lines.filter_by_grants).
    """

    at: datetime
    tenant_id: UUID
    agent_id: UUID
    agent_name: str
    agent_in_use: bool
    key_in_force: bool | None
    key_revoked: bool
    connection: ConnectionRights | None
    tool: str
    installed: InstalledTool | None
    halts: tuple[HaltValue, ...]
    grants: tuple[GrantValue, ...]
    consents: tuple[ConsentValue, ...]
    lines: tuple[BudgetLine, ...]
    layers: tuple[CompiledPolicy, ...]
    secrets: frozenset[str]


def _in_reach(
    halts: Iterable[HaltValue], *, tenant_id: UUID, tool: str, installed: InstalledTool | None, agent_name: str
) -> Iterator[HaltValue]:
    """Those that the call is in reach of: thrown by the hub, by the tenant, or for its tool by whoever publishes it."""
    version = encode("tvn", installed.version_id) if installed and installed.version_id else ""
    targets: dict[str, str] = {Reach.VERSION: version, Reach.AGENT: agent_name, Reach.TOOL: tool}
    for halt in halts:
        if halt.tenant_id not in (None, tenant_id, installed.publisher_id if installed else None):
            continue
        if halt.target == targets.get(halt.reach, halt.target):
            yield halt


def _layers(rows: list[list[Any]] | None) -> tuple[CompiledPolicy, ...]:
    """The hub's policy, or the one that is built in, then the tenant's."""
    found = list(starmap(PolicyRow, rows or ()))
    hub = [read_id(row.id) for row in found if row.tenant_id is None]
    tenant = [read_id(row.id) for row in found if row.tenant_id is not None]
    return (*(map(compiled_policy, hub) if hub else (BUILTIN,)), *map(compiled_policy, tenant))


def load_decision_context(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    tool: str,
    now: datetime | None = None,
    key_id: UUID | None = None,
    connection_id: UUID | None = None,
    row: CallRow | None = None,
) -> DecisionContext:
    """Everything that decides, as it is at one moment. One round trip, and nothing is locked; what the person may by now who has let
    a program call is asked in a second one.

    ``now``: by the database's clock, as is what it is held against: when keys, grants and consents end. None: this moment. ``row``:
    the database's answer for that moment, where it was asked together with something else.
    """
    now = now or database_time()
    row = row or fetch_call_row(tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, tool=tool, now=now)
    agent = AgentRow(*row.agent) if row.agent else NO_AGENT
    halts = list(starmap(read_halt, row.halts or ()))
    stopped = {halt.target for halt in halts if halt.reach == Reach.AGENT and halt.tenant_id == tenant_id}
    installed = read_installation(*row.installation) if row.installation else None
    second = int(now.timestamp())
    grants = [read_grant(*grant, stopped=stopped) for grant in row.grants or ()]
    return DecisionContext(
        at=now,
        tenant_id=tenant_id,
        agent_id=agent_id,
        agent_name=agent.name,
        agent_in_use=agent.disabled_at is None,
        key_in_force=None if key_id is None else bool(agent.key_lasts) and not agent.key_revoked,
        key_revoked=bool(agent.key_revoked),
        connection=find_connection_rights(connection_id, tenant_id=tenant_id, agent_id=agent_id, now=now)
        if connection_id
        else None,
        tool=tool,
        installed=installed,
        halts=tuple(
            _in_reach(halts, tenant_id=tenant_id, tool=tool, installed=installed, agent_name=encode("agt", agent_id))
        ),
        grants=tuple([grant for grant in grants if grant]),
        consents=tuple(starmap(read_consent, row.consents or ())),
        lines=tuple([read_budget(*budget, agent_name=agent.name, second=second) for budget in row.budgets or ()]),
        layers=_layers(row.policies),
        secrets=frozenset(row.secrets or ()),
    )


def load_decision_contexts(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    key_id: UUID | None,
    connection_id: UUID | None = None,
    now: datetime | None = None,
) -> list[DecisionContext]:
    """The same for each tool that the tenant has installed, by name; two round trips for all of them.

    Consents and budgets, which say whether one call may be made and not what there is to call, are left out.
    """
    now = now or database_time()
    one = load_decision_context(
        tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, connection_id=connection_id, tool="", now=now
    )
    installed, halts = _load_installed(tenant_id)
    return list(_for_each_tool(replace(one, consents=(), lines=()), installed, halts))


def load_contexts_of_agents(
    *, tenant_id: UUID, agent_ids: Iterable[UUID], now: datetime | None = None
) -> Iterator[tuple[UUID, list[DecisionContext]]]:
    """The same for several agents, without keys and connections; the same number of round trips however many they are."""
    now, asked = now or database_time(), sorted(set(agent_ids))
    if not asked:
        return
    one = load_decision_context(tenant_id=tenant_id, agent_id=asked[0], tool="", now=now)
    row = fetch_agents_row(tenant_id=tenant_id, agent_ids=asked, now=now)
    installed, halts = _load_installed(tenant_id)
    stopped = {halt.target for halt in halts if halt.reach == Reach.AGENT and halt.tenant_id == tenant_id}
    for_all = [read_grant(*grant, stopped=stopped) for grant in row.common_grants or ()]
    for agent in starmap(GrantedAgentRow, row.agents or ()):
        agent_id = read_id(agent.id)
        own = [read_grant(*grant, stopped=stopped) for grant in agent.grants or ()]
        every = replace(
            one,
            agent_id=agent_id,
            agent_name=agent.name,
            agent_in_use=agent.disabled_at is None,
            grants=tuple([grant for grant in (*own, *for_all) if grant]),
            consents=(),
            lines=(),
        )
        yield agent_id, list(_for_each_tool(every, installed, halts))


def _load_installed(tenant_id: UUID) -> tuple[list[tuple[str, InstalledTool]], list[HaltValue]]:
    """What the tenant has installed, by name, and every kill switch that may reach any of it."""
    row = fetch_tenant_row(tenant_id=tenant_id)
    rows = sorted(starmap(NamedInstallationRow, row.installations or ()), key=attrgetter("name"))
    return [(each.name, read_installation(*each.installation)) for each in rows], [
        read_halt(*halt) for halt in row.halts or ()
    ]


def _for_each_tool(
    every: DecisionContext, installed: Iterable[tuple[str, InstalledTool]], halts: list[HaltValue]
) -> Iterator[DecisionContext]:
    """``every``: what decides about the agent, whatever it calls."""
    agent, tenant_id = encode("agt", every.agent_id), every.tenant_id
    for name, each in installed:
        reached = tuple(_in_reach(halts, tenant_id=tenant_id, tool=name, installed=each, agent_name=agent))
        yield replace(every, tool=name, installed=each, halts=reached)
