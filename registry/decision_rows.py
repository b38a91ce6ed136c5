"""Decision rows: how what the database answers about a decision is read into values.

A row comes as an array, which costs a call less than an object does. Nobody counts its columns: it is read by a function or a class
whose parameters are its columns, and :mod:`registry.decision_statement` writes the statement's columns out of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from access.budgets.lines import BudgetLine, number_at
from access.consents.matcher import ConsentValue
from access.grants.matcher import GrantValue
from access.models import BudgetScope
from kernel.ids import encode


class InstalledTool(NamedTuple):
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
    tool_kind: str
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


class HaltValue(NamedTuple):
    """A kill switch that is thrown, as plain values."""

    tenant_id: UUID | None
    reach: str
    target: str
    reason: str


class CallRow(NamedTuple):
    """The answer about one agent and one tool: of each kind a row, or a list of rows; None where there is none."""

    installation: list[Any] | None
    agent: list[Any] | None
    halts: list[list[Any]] | None
    grants: list[list[Any]] | None
    consents: list[list[Any]] | None
    budgets: list[list[Any]] | None
    policies: list[list[Any]] | None
    secrets: list[str] | None


class TenantRow(NamedTuple):
    """The answer about all that a tenant has installed."""

    installations: list[list[Any]] | None
    halts: list[list[Any]] | None


class AgentsRow(NamedTuple):
    """The answer about several agents of a tenant: each with its grants, and those that are for every agent."""

    agents: list[list[Any]] | None
    common_grants: list[list[Any]] | None


class AgentRow(NamedTuple):
    """The agent, and the key if one was asked about; without one ``key_lasts`` is None."""

    name: str
    disabled_at: str | None
    key_revoked: bool | int
    key_lasts: bool | int | None


class DelegationRow(NamedTuple):
    """A grant that another was handed on from; ``level`` 1 is the one it was handed on from directly."""

    level: int
    agent_id: str
    grant_id: str
    in_force: bool | int


class PolicyRow(NamedTuple):
    """A policy in force; the hub's has no tenant."""

    id: str
    tenant_id: str | None


class NamedInstallationRow(NamedTuple):
    name: str
    installation: list[Any]


class GrantedAgentRow(NamedTuple):
    id: str
    name: str
    disabled_at: str | None
    grants: list[list[Any]] | None


@lru_cache(maxsize=65_536)
def read_id(text: str) -> UUID:
    """The ids of what is in force come with every call."""
    return UUID(text)


def _id(text: str | None) -> UUID | None:
    return None if text is None else read_id(text)


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read_installation(
    id: str,
    state: str,
    reason: str,
    changed_at: str,
    config_digest: str,
    hosts: list[str] | None,
    paths: list[str] | None,
    secrets: dict[str, str],
    tool_id: str,
    tool_kind: str,
    tool_state: str,
    tool_reason: str,
    tool_changed_at: str,
    sunset_on: str | None,
    successor: str,
    publisher_id: str,
    version_id: str | None,
    version: str | None,
    manifest_digest: str | None,
    build_digest: str | None,
    yanked_at: str | None,
    yank_reason: str | None,
    trusted_at: str | None,
    signed_by: str | None,
) -> InstalledTool:
    return InstalledTool(
        id=read_id(id),
        state=state,
        reason=reason,
        changed_at=_time(changed_at),
        config_digest=config_digest,
        hosts=hosts,
        paths=paths,
        secrets=secrets,
        tool_id=read_id(tool_id),
        tool_kind=tool_kind,
        tool_state=tool_state,
        tool_reason=tool_reason,
        tool_changed_at=_time(tool_changed_at),
        sunset_on=date.fromisoformat(sunset_on) if sunset_on else None,
        successor=successor,
        publisher_id=read_id(publisher_id),
        version_id=_id(version_id),
        version=version or "",
        manifest_digest=manifest_digest or "",
        build_digest=build_digest or "",
        yanked=yanked_at is not None,
        yank_reason=yank_reason or "",
        trusted=trusted_at is not None,
        signed_by=signed_by or "",
    )


def read_halt(tenant_id: str | None, reach: str, target: str, reason: str) -> HaltValue:
    return HaltValue(_id(tenant_id), reach, target, reason)


def read_grant(
    id: str,
    agent_id: str | None,
    tools: str,
    capabilities: dict[str, Any] | None,
    scopes: list[dict[str, str]] | None,
    conditions: list[dict[str, Any]],
    expires_at: str | None,
    chain: list[list[Any]] | None,
    *,
    stopped: set[str],
) -> GrantValue | None:
    """None for what was handed on by way of a grant that is no longer in force, or of an agent that is stopped or out of use."""
    above: tuple[tuple[UUID, UUID], ...] = ()
    if chain:
        farthest_first = sorted(starmap(DelegationRow, chain), key=attrgetter("level"), reverse=True)
        above = tuple((read_id(each.agent_id), read_id(each.grant_id)) for each in farthest_first)
        in_force = all(each.in_force for each in farthest_first)
        if not in_force or {encode("agt", agent) for agent, _ in above} & stopped:
            return None
    until = _time(expires_at) if expires_at else None
    return GrantValue(read_id(id), tools, _id(agent_id), capabilities, scopes, conditions, until, above)


def read_consent(
    id: str,
    mode: str,
    versions: str,
    user_fingerprint: str,
    arguments_fingerprint: str,
    policy_hash: str,
    expires_at: str | None,
    decided_at: str | None,
    data_classes: list[str],
) -> ConsentValue:
    return ConsentValue(
        read_id(id),
        mode,
        versions,
        user_fingerprint,
        arguments_fingerprint,
        policy_hash,
        _time(expires_at) if expires_at else None,
        decided_at=_time(decided_at) if decided_at else None,
        data_classes=data_classes,
    )


OF_AGENT = BudgetScope.AGENT.value  # a member of an enumeration takes longer to find than all else here


def read_budget(
    id: str,
    scope: str,
    tool: str,
    grant_id: str | None,
    dimension: str,
    amount: int,
    window_s: int,
    used: int | None,
    reserved: int | None,
    raised: int | None,
    *,
    agent_name: str,
    second: int,
) -> BudgetLine:
    grant = _id(grant_id)
    label = agent_name if scope == OF_AGENT else encode("grt", grant) if grant else tool
    number = number_at(second, window_s)
    return BudgetLine(
        read_id(id), scope, label, dimension, amount + (raised or 0), window_s, number, used or 0, reserved or 0, grant
    )
