"""What decides about this agent and this tool, right now?

:func:`load_decision_context` reads all of it with one prepared statement: key, agent, kill switches, the installation with its tool
and version, grants, consents, budgets and the policies in force. Nothing of it is kept between calls, so what somebody took
back counts with the next one. Only what never changes is cached, by its id: manifests, compiled schemas and policies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from access.budgets.lines import BudgetLine, window_number
from access.consents.matcher import ConsentValue
from access.grants.matcher import GrantValue
from access.models import BudgetScope, Reach
from access.policies.cache import compiled_policy
from access.policies.compiler import BUILTIN, CompiledPolicy
from kernel.database.connections import database_time
from kernel.database.prepared_statements import fetch_prepared
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTALLED = """i.id, i.state, i.reason, i.changed_at, i.config_digest, {json}(i.hosts), {json}(i.paths), {json}(i.secrets),
                t.id, t.state, t.state_reason, t.state_changed_at, t.sunset_on, t.successor, t.tenant_id,
                v.id, v.version, v.manifest_digest, v.build_digest, v.yanked_at, v.yank_reason, v.trusted_at, p.key_id){name}
     FROM registry_installation i JOIN registry_tool t ON t.id = i.tool_id
     LEFT JOIN registry_toolversion v ON v.id = i.version_id
     LEFT JOIN registry_capsule c ON c.id = v.capsule_id
     LEFT JOIN registry_publisherkey p ON p.id = c.signed_by_id AND p.revoked_at IS NULL"""
# One row of arrays; `{one}(…)` and `{many}(…)` build them in the database's own way. Columns are read by position, below.
STATEMENT = """
SELECT
  (SELECT {one}({installed}
    WHERE i.tenant_id = {tenant} AND i.name = {name} AND i.state <> 'removed'),
  (SELECT {one}(a.name, a.disabled_at, k.revoked_at IS NOT NULL, k.expires_at > {now})
     FROM access_agent a LEFT JOIN access_apikey k ON k.agent_id = a.id AND k.id = {key}
    WHERE a.id = {agent} AND a.tenant_id = {tenant}),
  (SELECT {many}({one}(h.tenant_id, h.reach, h.target, h.reason)) FROM access_halt h
    WHERE h.lifted_at IS NULL AND (h.tenant_id = {tenant} OR h.tenant_id IS NULL OR h.reach IN ('tool', 'version'))
      AND (h.target IN ('', {name}, {agent_name}) OR h.reach IN ('version', 'agent'))),
  (SELECT {many}({one}(g.id, g.agent_id, g.tools, {json}(g.capabilities), {json}(g.scopes), {json}(g.conditions), g.expires_at,
                        CASE WHEN g.delegated_from_id IS NOT NULL THEN (
                          WITH RECURSIVE above(level, id, agent_id, delegated_from_id, revoked_at, expires_at) AS (
                            SELECT 1, p.id, p.agent_id, p.delegated_from_id, p.revoked_at, p.expires_at
                              FROM access_grant p WHERE p.id = g.delegated_from_id
                            UNION ALL
                            SELECT a.level + 1, p.id, p.agent_id, p.delegated_from_id, p.revoked_at, p.expires_at
                              FROM above a JOIN access_grant p ON p.id = a.delegated_from_id)
                          SELECT {many}({one}(u.level, u.agent_id, u.id, u.revoked_at IS NULL AND o.disabled_at IS NULL
                                                AND (u.expires_at IS NULL OR u.expires_at > {now})))
                            FROM above u JOIN access_agent o ON o.id = u.agent_id) END))
     FROM access_grant g
    WHERE g.tenant_id = {tenant} AND (g.agent_id = {agent} OR g.agent_id IS NULL) AND g.revoked_at IS NULL
      AND (g.expires_at IS NULL OR g.expires_at > {now})),
  (SELECT {many}({one}(c.id, c.mode, c.versions, c.user_fingerprint, c.arguments_fingerprint, c.policy_hash, c.expires_at,
                        c.decided_at))
     FROM access_consent c
    WHERE c.agent_id = {agent} AND c.tool = {name} AND c.state = 'approved'
      AND (c.expires_at IS NULL OR c.expires_at > {now})),
  (SELECT {many}({one}(b.id, b.scope, b.tool, b.grant_id, b.dimension, b.amount, b.window_s, w.used, w.reserved, w.raised))
     FROM access_budget b LEFT JOIN access_budgetwindow w ON w.budget_id = b.id
      AND w.number = CASE WHEN b.window_s = 0 THEN 0 ELSE {second} / b.window_s END
    WHERE b.tenant_id = {tenant} AND b.ended_at IS NULL
      AND (b.scope IN ('tenant', 'grant') OR b.agent_id = {agent} OR b.tool = {name})),
  (SELECT {many}({one}(p.id, p.tenant_id)) FROM access_policyversion p
    WHERE p.state = 'in_force' AND (p.tenant_id = {tenant} OR p.tenant_id IS NULL)),
  (SELECT {many}(s.name) FROM registry_secret s WHERE s.tenant_id = {tenant})
"""


# All that a tenant has installed, by name, and every kill switch that may reach any of it.
OF_ALL = """
SELECT
  (SELECT {many}({one}(a.name, {json}(a.instance))) FROM (SELECT i.name AS name, {one}({installed_as}
    WHERE i.tenant_id = {tenant} AND i.state <> 'removed') a),
  (SELECT {many}({one}(h.tenant_id, h.reach, h.target, h.reason)) FROM access_halt h
    WHERE h.lifted_at IS NULL AND (h.tenant_id = {tenant} OR h.tenant_id IS NULL OR h.reach IN ('tool', 'version')))
"""


def _statement(template: str, parameter: str, **dialect: str) -> str:
    names = ("tenant", "agent", "key", "name", "agent_name", "now", "second")
    installed, named = (INSTALLED.format(json=dialect["json"], name=name) for name in ("", " AS instance"))
    asked = {name: parameter.format(name) for name in names}
    return template.format(installed=installed, installed_as=named, **dialect, **asked)


POSTGRESQL, POSTGRESQL_OF_ALL = (
    _statement(each, "%({})s", one="json_build_array", many="json_agg", json="").encode()
    for each in (STATEMENT, OF_ALL)
)
SQLITE, SQLITE_OF_ALL = (
    _statement(each, ":{}", one="json_array", many="json_group_array", json="json") for each in (STATEMENT, OF_ALL)
)


@dataclass(frozen=True, slots=True)
class InstalledTool:
    """The tenant's instance of the tool, with the tool and the version that calls get. ``version_id`` None: none yet."""

    id: UUID
    state: str
    reason: str
    changed_at: datetime
    config_digest: str
    hosts: list[str] | None
    paths: list[str] | None
    secrets: dict[str, str]
    tool_id: UUID
    tool_state: str
    tool_reason: str
    tool_changed_at: datetime
    sunset_on: date | None
    successor: str
    publisher_id: UUID
    version_id: UUID | None
    version: str
    manifest_digest: str
    build_digest: str
    yanked: bool
    yank_reason: str
    trusted: bool
    signed_by: str  # the id of the publisher's key that signed the version, while it is in force


@dataclass(frozen=True, slots=True)
class HaltValue:
    """A kill switch that is thrown, as plain values."""

    tenant_id: UUID | None
    reach: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """``layers``: the policies that the call needs to pass, the hub's first. ``key_in_force``: None when no key was asked about.
    ``lines`` are those of every grant; take the ones of the chosen grant (access.budgets.lines.filter_by_grants).
    """

    at: datetime
    tenant_id: UUID
    agent_id: UUID
    agent_name: str
    agent_in_use: bool
    key_in_force: bool | None
    key_revoked: bool
    tool: str
    installed: InstalledTool | None
    halts: tuple[HaltValue, ...]
    grants: tuple[GrantValue, ...]
    consents: tuple[ConsentValue, ...]
    lines: tuple[BudgetLine, ...]
    layers: tuple[CompiledPolicy, ...]
    secrets: frozenset[str]


def _row(
    statement: bytes,
    in_sqlite: str,
    *,
    tenant_id: UUID,
    agent_id: UUID,
    key_id: UUID | None = None,
    tool: str = "",
    now: datetime,
) -> list[Any]:
    """The one row, as JSON values; ids and times are text in the form of the database."""
    asked: dict[str, Any] = {"name": tool, "agent_name": encode("agt", agent_id), "second": int(now.timestamp())}
    if connection.vendor == "postgresql":
        asked |= {"tenant": tenant_id, "agent": agent_id, "key": key_id, "now": now}
        return list(fetch_prepared(statement, asked)[0])
    connection.ensure_connection()
    asked |= {"tenant": tenant_id.hex, "agent": agent_id.hex, "key": key_id.hex if key_id else None}
    asked["now"] = connection.ops.adapt_datetimefield_value(now)
    with connection.wrap_database_errors:
        row = connection.connection.execute(in_sqlite, asked).fetchone()
    return [None if column is None else json.loads(column) for column in row]


@lru_cache(maxsize=65_536)
def _uuid(text: str) -> UUID:
    """The ids of what is in force come with every call."""
    return UUID(text)


def _id(text: str | None) -> UUID | None:
    return None if text is None else _uuid(text)


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _installed(row: list[Any] | None) -> InstalledTool | None:
    if row is None:
        return None
    (id, state, reason, changed, config, hosts, paths, secrets, tool, tool_state, tool_reason, tool_changed, *rest) = (
        row
    )
    sunset, successor, publisher, version_id, version, manifest, build, yanked, yank_reason, trusted, signed_by = rest
    return InstalledTool(
        id=_uuid(id),
        state=state,
        reason=reason,
        changed_at=_time(changed),
        config_digest=config,
        hosts=hosts,
        paths=paths,
        secrets=secrets,
        tool_id=_uuid(tool),
        tool_state=tool_state,
        tool_reason=tool_reason,
        tool_changed_at=_time(tool_changed),
        sunset_on=date.fromisoformat(sunset) if sunset else None,
        successor=successor,
        publisher_id=_uuid(publisher),
        version_id=_id(version_id),
        version=version or "",
        manifest_digest=manifest or "",
        build_digest=build or "",
        yanked=yanked is not None,
        yank_reason=yank_reason or "",
        trusted=trusted is not None,
        signed_by=signed_by or "",
    )


def _halts(
    rows: list[Any] | None, *, tenant_id: UUID, tool: str, installed: InstalledTool | None, agent_name: str
) -> Iterator[HaltValue]:
    """Those that the call is in reach of: thrown by the hub, by the tenant, or for its tool by whoever publishes it."""
    version = encode("tvn", installed.version_id) if installed and installed.version_id else ""
    targets = {Reach.VERSION: version, Reach.AGENT: agent_name, Reach.TOOL: tool}
    for owner, reach, target, reason in rows or ():
        halt = HaltValue(_id(owner), reach, target, reason)
        if halt.tenant_id not in (None, tenant_id, installed.publisher_id if installed else None):
            continue
        if target == targets.get(Reach(reach), target):
            yield halt


def _grants(rows: list[Any] | None, *, stopped: set[str]) -> Iterator[GrantValue]:
    """Without what was handed on by way of a grant that is no longer in force, or of an agent that is stopped or out of use."""
    for id, of, tools, capabilities, scopes, conditions, expires, chain in rows or ():
        above: tuple[tuple[UUID, UUID], ...] = ()
        if chain:
            farthest_first = sorted(chain, reverse=True)
            above = tuple((_uuid(agent), _uuid(grant)) for _, agent, grant, _ in farthest_first)
            if not all(in_force for *_, in_force in chain) or {encode("agt", agent) for agent, _ in above} & stopped:
                continue
        until = _time(expires) if expires else None
        yield GrantValue(_uuid(id), tools, _id(of), capabilities, scopes, conditions, until, above)


def _lines(rows: list[Any] | None, *, agent_name: str, now: datetime) -> Iterator[BudgetLine]:
    for id, scope, tool, grant, dimension, amount, window_s, used, reserved, raised in rows or ():
        grant_id = _id(grant)
        label = agent_name if scope == BudgetScope.AGENT else encode("grt", grant_id) if grant_id else tool
        yield BudgetLine(
            budget_id=_uuid(id),
            scope=scope,
            label=label,
            dimension=dimension,
            amount=amount + (raised or 0),
            window_s=window_s,
            number=window_number(window_s, now),
            used=used or 0,
            reserved=reserved or 0,
            grant_id=grant_id,
        )


def _layers(rows: list[Any] | None) -> tuple[CompiledPolicy, ...]:
    """The hub's policy, or the one that is built in, then the tenant's."""
    hub = [_uuid(id) for id, owner in rows or () if owner is None]
    tenant = [_uuid(id) for id, owner in rows or () if owner is not None]
    return (*(map(compiled_policy, hub) if hub else (BUILTIN,)), *map(compiled_policy, tenant))


def load_decision_context(
    *, tenant_id: UUID, agent_id: UUID, tool: str, now: datetime | None = None, key_id: UUID | None = None
) -> DecisionContext:
    """Everything that decides, as it is at one moment. One round trip, and nothing is locked.

    ``now``: by the database's clock, as is what it is held against: when keys, grants and consents end. None: this moment.
    """
    now = now or database_time()
    row = _row(POSTGRESQL, SQLITE, tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, tool=tool, now=now)
    installation, agent, halts, grants, consents, budgets, policies, secrets = row
    agent_name, disabled_at, key_revoked, key_lasts = agent or ("", "never was", False, None)
    installed = _installed(installation)
    stopped = {target for owner, reach, target, _ in halts or () if reach == Reach.AGENT and _id(owner) == tenant_id}
    return DecisionContext(
        at=now,
        tenant_id=tenant_id,
        agent_id=agent_id,
        agent_name=agent_name,
        agent_in_use=disabled_at is None,
        key_in_force=None if key_id is None else bool(key_lasts) and not key_revoked,
        key_revoked=bool(key_revoked),
        tool=tool,
        installed=installed,
        halts=tuple(
            _halts(halts, tenant_id=tenant_id, tool=tool, installed=installed, agent_name=encode("agt", agent_id))
        ),
        grants=tuple(_grants(grants, stopped=stopped)),
        consents=tuple(
            ConsentValue(
                _uuid(id),
                mode,
                versions,
                user,
                arguments,
                policy,
                _time(expires) if expires else None,
                decided_at=_time(decided) if decided else None,
            )
            for id, mode, versions, user, arguments, policy, expires, decided in consents or ()
        ),
        lines=tuple(_lines(budgets, agent_name=agent_name, now=now)),
        layers=_layers(policies),
        secrets=frozenset(secrets or ()),
    )


def load_decision_contexts(
    *, tenant_id: UUID, agent_id: UUID, key_id: UUID | None, now: datetime | None = None
) -> list[DecisionContext]:
    """The same for each tool that the tenant has installed, by name; two round trips for all of them.

    Consents and budgets, which say whether one call may be made and not what there is to call, are left out.
    """
    now = now or database_time()
    one = load_decision_context(tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, tool="", now=now)
    every = replace(one, consents=(), lines=())
    rows, halts = _row(POSTGRESQL_OF_ALL, SQLITE_OF_ALL, tenant_id=tenant_id, agent_id=agent_id, now=now)
    found, agent = [], encode("agt", agent_id)
    for name, row in sorted(rows or (), key=itemgetter(0)):
        installed = _installed(row)
        reached = tuple(_halts(halts, tenant_id=tenant_id, tool=name, installed=installed, agent_name=agent))
        found.append(replace(every, tool=name, installed=installed, halts=reached))
    return found
