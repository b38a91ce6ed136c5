"""How is it asked whether calls may be made, without making them?

One, or up to a hundred that an agent plans to make: each is judged alone, by one look at what decides about its tool, and all of
them together against the budgets. Nothing runs. How often it was asked is tallied, and becomes a fact.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from access.budgets.ahead import Share, whole
from access.budgets.lines import Demand
from evidence.kinds import Kind
from invocations import services
from invocations.calls import fingerprints_of
from invocations.explaining import steps_of
from invocations.preflight import STEPS, Preflight, run_preflight
from invocations.rejecting import count
from invocations.steps import FAILED, SKIPPED, StepLog
from registry.deprecation import retirement_in
from toolhub.kernel.ids import encode
from toolhub.kernel.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from invocations.calls import Call
    from registry.standing import Standing
    from toolhub.kernel.principal import Principal


class Asked(NamedTuple):
    """What was found about one call. ``preflight`` is None for a tool of a name that means nothing here."""

    call: Call
    problem: Problem | None
    preflight: Preflight | None
    log: StepLog

    @property
    def retirement(self) -> Any:
        return retirement_in(self.preflight.standing) if self.preflight else None

    def to_json(self) -> dict[str, Any]:
        error = self.problem.to_error() if self.problem else None
        said: dict[str, Any] = {"allow": error is None, "problem": error, "tool": self.call.tool}
        preflight = self.preflight
        if preflight is None:
            first, *later = STEPS
            steps = [{"name": first, "status": FAILED, "ms": 0.0, "note": "", "problem": error}]
            steps += [{"name": name, "status": SKIPPED, "ms": 0.0, "note": "", "problem": None} for name in later]
            return said | {"refused_at": first, "steps": steps} | dict.fromkeys(REST) | {"profile_explanation": []}
        installed = preflight.standing.installed
        rest: dict[str, Any] = {
            "version": installed.version or None if installed else None,
            "profile": preflight.profile.to_json() if preflight.profile else None,
            "profile_hash": preflight.profile_hash or None,
            "policy": {"version": preflight.policy_label, "hash": preflight.policy_hash},
            "budget_snapshot": preflight.budget or None,
            "consent": encode("cns", preflight.consent.id) if preflight.consent else None,
            "obligations": preflight.obligations,
        }
        said |= {"refused_at": preflight.refused_at or None, "steps": steps_of(preflight, self.log)}
        return said | rest | {"profile_explanation": preflight.explanation}


REST = ("version", "profile", "profile_hash", "policy", "budget_snapshot", "consent", "obligations")


def ask_preflight(call: Call, *, by: Principal) -> Asked:
    """All steps of one call, also after one that refuses. Raises for a name that is no tool."""
    preflight, log = services.preflight_call(call, by=by, everything=True)
    reason = preflight.problem.reason if preflight.problem else ""
    count(Kind.INVOCATION_PREFLIGHTED, tenant_id=by.tenant_id, agent=by.id, tool=call.tool, reason=reason)
    return Asked(call, preflight.problem, preflight, log)


def ask_preflights(calls: Sequence[Call], *, by: Principal) -> list[Asked]:
    """The same for each of several calls, in their order, as everything stands at one moment."""
    now, standings, found = datetime.now(UTC), dict[str, "Standing | Problem"](), []
    for call in calls:
        if call.tool not in standings:
            try:
                standings[call.tool] = services.standing_of(call.tool, by=by, now=now)
            except Problem as problem:
                standings[call.tool] = problem
        standing, log = standings[call.tool], StepLog(datetime.now(UTC))
        if isinstance(standing, Problem):
            found.append(Asked(call, standing, None, log))
            continue
        preflight = run_preflight(call, standing, fingerprints_of(call, by), log=log, everything=True)
        found.append(Asked(call, preflight.problem, preflight, log))
    count(Kind.INVOCATION_PREFLIGHTED, tenant_id=by.tenant_id, agent=by.id, times=len(calls))
    return found


def together(asked: Iterable[Asked]) -> dict[str, Any]:
    """Whether the budgets have room for all of the calls, with the most that each may take."""
    shares = [Share(each.preflight.lines, each.preflight.demand) for each in asked if each.preflight is not None]
    sums = whole(shares)
    short = [(line, takes) for line, takes in sums if line.used + line.reserved + takes > line.amount]
    return {
        "fits": not short,
        "budgets": [line.to_json(Demand()) | {"takes": takes} for line, takes in sums],
        "short": [line.wire_id for line, _ in short],
    }
