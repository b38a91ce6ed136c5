"""Decision statement: what the database is asked for a decision context.

Its columns are written out of the parameters of who reads them (:mod:`registry.decision_rows`), in their order, so that there is no
second order to keep in step. A parameter is the column of its name unless its expression is given.
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from kernel.database.prepared_statements import fetch_prepared
from kernel.ids import encode
from registry.decision_rows import (
    AgentRow,
    AgentsRow,
    CallRow,
    DelegationRow,
    GrantedAgentRow,
    NamedInstallationRow,
    PolicyRow,
    TenantRow,
    read_budget,
    read_consent,
    read_grant,
    read_halt,
    read_installation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime


def write_columns(reader: Callable[..., Any], table: str, **expressions: str) -> str:
    """The reader's positional parameters in their order: each its expression, or the column of its name."""
    parameters = inspect.signature(reader).parameters.values()
    names = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    if unknown := expressions.keys() - set(names):
        raise TypeError(f"{reader.__name__} does not take {', '.join(sorted(unknown))}.")
    return ", ".join(expressions.get(name, f"{table}.{name}") for name in names)


# `{one}(…)` and `{many}(…)` build arrays in the database's own way; `{json}(…)` says that a text is JSON.
COLUMNS = {
    "installation": write_columns(
        read_installation,
        "i",
        hosts="{json}(i.hosts)",
        paths="{json}(i.paths)",
        secrets="{json}(i.secrets)",
        tool_id="t.id",
        tool_kind="t.kind",
        tool_state="t.state",
        tool_reason="t.state_reason",
        tool_changed_at="t.state_changed_at",
        sunset_on="t.sunset_on",
        successor="t.successor",
        publisher_id="t.tenant_id",
        version_id="v.id",
        version="v.version",
        manifest_digest="v.manifest_digest",
        build_digest="v.build_digest",
        yanked_at="v.yanked_at",
        yank_reason="v.yank_reason",
        trusted_at="v.trusted_at",
        signed_by="p.key_id",
    ),
    "agent_and_key": write_columns(
        AgentRow, "a", key_revoked="k.revoked_at IS NOT NULL", key_lasts="k.expires_at > {now}"
    ),
    "halt": write_columns(read_halt, "h"),
    "delegation": write_columns(
        DelegationRow,
        "u",
        grant_id="u.id",
        in_force="u.revoked_at IS NULL AND o.disabled_at IS NULL AND (u.expires_at IS NULL OR u.expires_at > {now})",
    ),
    "grant": write_columns(
        read_grant,
        "g",
        capabilities="{json}(g.capabilities)",
        scopes="{json}(g.scopes)",
        conditions="{json}(g.conditions)",
        chain="CASE WHEN g.delegated_from_id IS NOT NULL THEN ({chain}) END",
    ),
    "consent": write_columns(read_consent, "c", data_classes="{json}(c.data_classes)"),
    "budget": write_columns(read_budget, "b", used="w.used", reserved="w.reserved", raised="w.raised"),
    "policy": write_columns(PolicyRow, "p"),
    "granted_agent": write_columns(
        GrantedAgentRow, "a", grants="(SELECT {many}({one}({grant})) {in_force} AND g.agent_id = a.id)"
    ),
    "named_installation": write_columns(NamedInstallationRow, "a", installation="{json}(a.installation)"),
}
INSTALLED = """
     FROM registry_installation i JOIN registry_tool t ON t.id = i.tool_id
     LEFT JOIN registry_toolversion v ON v.id = i.version_id
     LEFT JOIN registry_capsule c ON c.id = v.capsule_id
     LEFT JOIN registry_publisherkey p ON p.id = c.signed_by_id AND p.revoked_at IS NULL"""
CHAIN = """
        WITH RECURSIVE above(level, id, agent_id, delegated_from_id, revoked_at, expires_at) AS (
          SELECT 1, p.id, p.agent_id, p.delegated_from_id, p.revoked_at, p.expires_at
            FROM access_grant p WHERE p.id = g.delegated_from_id
          UNION ALL
          SELECT a.level + 1, p.id, p.agent_id, p.delegated_from_id, p.revoked_at, p.expires_at
            FROM above a JOIN access_grant p ON p.id = a.delegated_from_id)
        SELECT {many}({one}({delegation})) FROM above u JOIN access_agent o ON o.id = u.agent_id"""

OF_CALL = {
    "installation": """
    SELECT {one}({installation}) {installed}
     WHERE i.tenant_id = {tenant} AND i.name = {name} AND i.state <> 'removed'""",
    "agent": """
    SELECT {one}({agent_and_key})
      FROM access_agent a LEFT JOIN access_apikey k ON k.agent_id = a.id AND k.id = {key}
     WHERE a.id = {agent} AND a.tenant_id = {tenant}""",
    "halts": """
    SELECT {many}({one}({halt})) FROM access_halt h
     WHERE h.lifted_at IS NULL AND (h.tenant_id = {tenant} OR h.tenant_id IS NULL OR h.reach IN ('tool', 'version'))
       AND (h.target IN ('', {name}, {agent_name}) OR h.reach IN ('version', 'agent'))""",
    "grants": """
    SELECT {many}({one}({grant})) FROM access_grant g
     WHERE g.tenant_id = {tenant} AND (g.agent_id = {agent} OR g.agent_id IS NULL) AND g.revoked_at IS NULL
       AND (g.expires_at IS NULL OR g.expires_at > {now})""",
    "consents": """
    SELECT {many}({one}({consent})) FROM access_consent c
     WHERE c.agent_id = {agent} AND c.tool = {name} AND c.state = 'approved'
       AND (c.expires_at IS NULL OR c.expires_at > {now})""",
    "budgets": """
    SELECT {many}({one}({budget}))
      FROM access_budget b LEFT JOIN access_budgetwindow w ON w.budget_id = b.id
       AND w.number = CASE WHEN b.window_s = 0 THEN 0 ELSE {second} / b.window_s END
     WHERE b.tenant_id = {tenant} AND b.ended_at IS NULL
       AND (b.scope IN ('tenant', 'grant') OR b.agent_id = {agent} OR b.tool = {name})""",
    "policies": """
    SELECT {many}({one}({policy})) FROM access_policyversion p
     WHERE p.state = 'in_force' AND (p.tenant_id = {tenant} OR p.tenant_id IS NULL)""",
    "secrets": """
    SELECT {many}(s.name) FROM registry_secret s WHERE s.tenant_id = {tenant}""",
}
# All that a tenant has installed, by name, and every kill switch that may reach any of it.
OF_TENANT = {
    "installations": """
    SELECT {many}({one}({named_installation})) FROM (
      SELECT i.name AS name, {one}({installation}) AS installation {installed}
       WHERE i.tenant_id = {tenant} AND i.state <> 'removed') a""",
    "halts": """
    SELECT {many}({one}({halt})) FROM access_halt h
     WHERE h.lifted_at IS NULL AND (h.tenant_id = {tenant} OR h.tenant_id IS NULL OR h.reach IN ('tool', 'version'))""",
}
# Agents of a tenant, and what was granted to each and to all of them.
IN_FORCE = """
        FROM access_grant g
       WHERE g.tenant_id = {tenant} AND g.revoked_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > {now})"""
OF_AGENTS = {
    "agents": """
    SELECT {many}({one}({granted_agent})) FROM access_agent a
     WHERE a.tenant_id = {tenant} AND a.id IN (SELECT {uuid} FROM {each}({agents}))""",
    "common_grants": """
    SELECT {many}({one}({grant})) {in_force} AND g.agent_id IS NULL""",
}
PARAMETERS = ("tenant", "agent", "key", "name", "agent_name", "now", "second", "agents")


def write_statement(
    row: type[CallRow | TenantRow | AgentsRow],
    parts: Mapping[str, str],
    dialect: Mapping[str, str],
    parameters: Mapping[str, str] | None = None,
) -> str:
    asked = parameters or {name: dialect["parameter"].format(name) for name in PARAMETERS}
    words = {**dialect, **asked, "installed": INSTALLED}
    words |= {"delegation": COLUMNS["delegation"].format(**words)}
    words |= {"chain": CHAIN.format(**words), "in_force": IN_FORCE.format(**words)}
    for name, columns in COLUMNS.items():  # one may be made of those before it
        words[name] = columns.format(**words)
    return "SELECT " + ",\n  ".join(f"({parts[name].format(**words)}) AS {name}" for name in row._fields)


POSTGRESQL = {
    "parameter": "%({})s",
    "one": "json_build_array",
    "many": "json_agg",
    "json": "",
    "each": "json_array_elements_text",
    "uuid": "value::uuid",
}
SQLITE = {
    "parameter": ":{}",
    "one": "json_array",
    "many": "json_group_array",
    "json": "json",
    "each": "json_each",
    "uuid": "value",
}
POSTGRESQL_CALL = write_statement(CallRow, OF_CALL, POSTGRESQL).encode()
POSTGRESQL_TENANT = write_statement(TenantRow, OF_TENANT, POSTGRESQL).encode()
POSTGRESQL_AGENTS = write_statement(AgentsRow, OF_AGENTS, POSTGRESQL).encode()
SQLITE_CALL = write_statement(CallRow, OF_CALL, SQLITE)
SQLITE_TENANT = write_statement(TenantRow, OF_TENANT, SQLITE)
SQLITE_AGENTS = write_statement(AgentsRow, OF_AGENTS, SQLITE)


def write_call_statement(**expressions: str) -> bytes:
    """The statement about one agent and one tool with expressions of PostgreSQL in place of these parameters."""
    parameters = {name: expressions.get(name, POSTGRESQL["parameter"].format(name)) for name in PARAMETERS}
    return write_statement(CallRow, OF_CALL, POSTGRESQL, parameters).encode()


def read_call_row(row: Sequence[Any]) -> CallRow:
    return CallRow(*row)


def fetch_call_row(*, tenant_id: UUID, agent_id: UUID, key_id: UUID | None, tool: str, now: datetime) -> CallRow:
    asked = _name_call(tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, tool=tool, now=now)
    return CallRow(*_fetch(POSTGRESQL_CALL, SQLITE_CALL, asked))


def prepare_call_row(
    *, tenant_id: UUID, agent_id: UUID, key_id: UUID | None, tool: str, now: datetime
) -> tuple[bytes, dict[str, Any]]:
    """The same statement on PostgreSQL and what it is asked with, to be asked together with others; :func:`read_call_row` reads it."""
    return POSTGRESQL_CALL, _name_call(tenant_id=tenant_id, agent_id=agent_id, key_id=key_id, tool=tool, now=now)


def _name_call(*, tenant_id: UUID, agent_id: UUID, key_id: UUID | None, tool: str, now: datetime) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "agent": agent_id,
        "key": key_id,
        "name": tool,
        "agent_name": encode("agt", agent_id),
        "now": now,
        "second": int(now.timestamp()),
    }


def fetch_tenant_row(*, tenant_id: UUID) -> TenantRow:
    return TenantRow(*_fetch(POSTGRESQL_TENANT, SQLITE_TENANT, {"tenant": tenant_id}))


def fetch_agents_row(*, tenant_id: UUID, agent_ids: Iterable[UUID], now: datetime) -> AgentsRow:
    asked = {"tenant": tenant_id, "agents": json.dumps([each.hex for each in agent_ids]), "now": now}
    return AgentsRow(*_fetch(POSTGRESQL_AGENTS, SQLITE_AGENTS, asked))


def _fetch(on_postgresql: bytes, on_sqlite: str, asked: dict[str, Any]) -> Sequence[Any]:
    if connection.vendor == "postgresql":
        return fetch_prepared(on_postgresql, asked)[0]
    connection.ensure_connection()
    values = {name: value.hex if isinstance(value, UUID) else value for name, value in asked.items()}
    if now := asked.get("now"):
        values["now"] = connection.ops.adapt_datetimefield_value(now)
    with connection.wrap_database_errors:
        row = connection.connection.execute(on_sqlite, values).fetchone()
    return [None if column is None else json.loads(column) for column in row]
