"""Grant matcher: which of an agent's grants let a call through, and what the others lack.

Pure functions over plain values, so that one statement can load the grants and nothing of authorization is kept between
calls. A grant covers a call when its expression names the tool; it lets the call through when it also holds every scope that
the manifest asks for and its conditions are met.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from access.grants.conditions import list_unmet_conditions
from access.problems import ConditionUnmet, NoGrant, ScopeMissing
from kernel.ids import encode
from unitools.expressions import compute_specificity, parse_cached

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from kernel.problems import Problem
    from unitools.expressions import Subject

Scope = dict[str, str]  # {"resource": "soul:fs:/data", "action": "read"}
BOUNDARIES = "/:"
ANY_ACTION = "*"


class GrantValue(NamedTuple):
    """A grant in force, as plain values. ``agent_id`` None: for every agent. None of scopes or capabilities: no bound.

    ``above``: (agent, grant) of those that it was handed on from, the first of the chain first.
    """

    id: UUID
    tools: str
    agent_id: UUID | None = None
    capabilities: dict[str, Any] | None = None
    scopes: Sequence[Scope] | None = None
    conditions: Sequence[dict[str, Any]] = ()
    expires_at: datetime | None = None
    above: tuple[tuple[UUID, UUID], ...] = ()

    @property
    def ids(self) -> frozenset[UUID]:
        """The grants whose budgets a call under this one counts against."""
        return frozenset({self.id, *(grant_id for _, grant_id in self.above)})

    @property
    def actors(self) -> list[dict[str, str]]:
        """Whom a call under this grant is made for, by their ids; nobody when it was not handed on."""
        return [
            {"agent": encode("agt", agent_id), "grant": encode("grt", grant_id)} for agent_id, grant_id in self.above
        ]


@dataclass(frozen=True, slots=True)
class CallRequirements:
    """A call as far as grants decide about it. ``scopes`` and ``capabilities``: what the tool's manifest asks for."""

    tool: Subject
    agent_id: UUID
    agent_name: str
    arguments: Any
    scopes: Sequence[Scope] = ()
    capabilities: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What one covering grant lacks for a call; nothing when it lets the call through."""

    scopes: Sequence[Scope] = ()
    conditions: Sequence[dict[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.scopes) + len(self.conditions)


NOTHING = Shortfall()


def covers_tool(grant: GrantValue, tool: Subject) -> bool:
    """Whether the grant's expression names the tool; one that cannot be read names nothing."""
    try:
        return parse_cached(grant.tools).matches(tool)
    except ValueError:
        return False


@lru_cache(maxsize=10_000)
def _specificity(tools: str) -> int:
    return compute_specificity(parse_cached(tools))


def find_covering_grants(grants: Iterable[GrantValue], wanted: CallRequirements, *, now: datetime) -> list[GrantValue]:
    """The grants that name the tool for this agent now, the most specific first: the agent's own before everybody's, and what other
    agents have handed on last, since nobody who gets it is asked: it adds to what an agent may, and stands in the way of nothing.
    """
    found = [
        grant
        for grant in grants
        if grant.agent_id in (None, wanted.agent_id)
        and (grant.expires_at is None or grant.expires_at > now)
        and covers_tool(grant, wanted.tool)
    ]
    return sorted(
        found, key=lambda grant: (bool(grant.above), grant.agent_id is None, -_specificity(grant.tools), grant.id)
    )


def holds_scope(held: Scope, asked: Scope) -> bool:
    """Whether a scope of a grant holds one of a manifest: the same action, and the resource or what is below it.

    ``soul:fs:/data`` holds ``soul:fs:/data/may.csv`` and not ``soul:fs:/database``.
    """
    if held["action"] not in (ANY_ACTION, asked["action"]):
        return False
    whole, part = held["resource"], asked["resource"]
    if part == whole:
        return True
    if not part.startswith(whole) or ".." in part.split("/"):
        return False
    return whole.endswith(tuple(BOUNDARIES)) or part[len(whole)] in BOUNDARIES


def missing_scopes(held: Sequence[Scope] | None, asked: Iterable[Scope]) -> list[Scope]:
    """The scopes of ``asked`` that nothing in ``held`` holds. None holds everything."""
    if held is None:
        return []
    return [scope for scope in asked if not any(holds_scope(each, scope) for each in held)]


def compute_shortfall(grant: GrantValue, wanted: CallRequirements) -> Shortfall:
    if grant.scopes is None and not grant.conditions:
        return NOTHING
    return Shortfall(
        missing_scopes(grant.scopes, wanted.scopes), list_unmet_conditions(list(grant.conditions), wanted.arguments)
    )


def check_granted(grants: Iterable[GrantValue], wanted: CallRequirements, *, now: datetime) -> list[GrantValue]:
    """The grants that let the call through, the most specific first. Raises what is in the way when there is none."""
    candidates = find_covering_grants(grants, wanted, now=now)
    usable = [grant for grant in candidates if not compute_shortfall(grant, wanted)]
    if not usable:
        raise grant_problem(candidates, wanted)
    return usable


def smallest_grant(wanted: CallRequirements, *, conditions: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The smallest grant that would allow the call, as POST /api/v1/grants takes it."""
    return {
        "agent": encode("agt", wanted.agent_id),
        "tools": wanted.tool.id,
        "capabilities": wanted.capabilities,
        "scopes": list(wanted.scopes),
        "conditions": list(conditions),
        "reason": f"{wanted.agent_name[:80]} needs {wanted.tool.id}.",
    }


def grant_problem(candidates: Sequence[GrantValue], wanted: CallRequirements) -> Problem:
    """Why none of the covering grants lets the call through: told of the one that lacks least."""
    tool, agent = wanted.tool.id, wanted.agent_name
    if not candidates:
        return NoGrant(
            f"{agent} has no grant for {tool}.",
            remedy=f"Ask an operator to give {agent} a grant for {tool}; the details name the smallest that would do.",
            details={"smallest_grant": smallest_grant(wanted)},
        )
    nearest = min(candidates, key=lambda grant: len(compute_shortfall(grant, wanted)))
    lacks = compute_shortfall(nearest, wanted)
    kept = [
        each for each in nearest.conditions if each["pointer"] not in {said["pointer"] for said in lacks.conditions}
    ]
    details: dict[str, Any] = {
        "grant": encode("grt", nearest.id),
        "smallest_grant": smallest_grant(wanted, conditions=kept),
    }
    if lacks.scopes:
        first = lacks.scopes[0]
        return ScopeMissing(
            f"The grant of {agent} for {tool} does not hold {first['action']} on {first['resource']}.",
            remedy=f"Ask an operator for a grant that holds {first['action']} on {first['resource']}.",
            details=details | {"missing_scopes": list(lacks.scopes), "unmet": list(lacks.conditions)},
        )
    return ConditionUnmet(
        f"The grant of {agent} for {tool} asks of the arguments: {lacks.conditions[0]['message']}",
        remedy="Call with arguments that meet the condition, or ask an operator for a wider grant.",
        details=details | {"unmet": list(lacks.conditions)},
    )
