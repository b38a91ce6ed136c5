"""Preflight requests: how it is asked whether calls may be made, without making them.

One, or up to a hundred that an agent plans to make: each is judged alone, by one look at what decides about its tool, and all of
them together against the budgets. Nothing runs. How often it was asked is tallied, and becomes a fact.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from access.budgets.chain_reservations import ChainShare, sum_shares
from access.budgets.lines import Demand
from evidence.kinds import Kind
from invocations import services
from invocations.calls import compute_fingerprints, name_person
from invocations.decide.preflight import STEPS, Preflight, run_preflight
from invocations.explanations.services import describe_steps
from invocations.request_tallies import tally_request
from invocations.step_log import FAILED, SKIPPED, StepLog
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.problems import Problem
from registry.tools.deprecation import context_retirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from invocations.calls import CallRequest
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext


class PreflightResult(NamedTuple):
    """What was found about one call. ``preflight`` is None for a tool of a name that means nothing here."""

    call: CallRequest
    problem: Problem | None
    preflight: Preflight | None
    log: StepLog

    @property
    def retirement(self) -> Any:
        return context_retirement(self.preflight.decision_context) if self.preflight else None

    def to_json(self) -> dict[str, Any]:
        error = self.problem.to_error() if self.problem else None
        said: dict[str, Any] = {"allow": error is None, "problem": error, "tool": self.call.tool}
        preflight = self.preflight
        if preflight is None:
            first, *later = STEPS
            steps = [{"name": first, "status": FAILED, "ms": 0.0, "note": "", "problem": error}]
            steps += [{"name": name, "status": SKIPPED, "ms": 0.0, "note": "", "problem": None} for name in later]
            return said | {"refused_at": first, "steps": steps} | dict.fromkeys(REST) | {"profile_explanation": []}
        installed = preflight.decision_context.installed
        rest: dict[str, Any] = {
            "version": installed.version or None if installed else None,
            "profile": preflight.profile.to_json() if preflight.profile else None,
            "profile_hash": preflight.profile_hash or None,
            "policy": {"version": preflight.policy_label, "hash": preflight.policy_hash},
            "budget_snapshot": preflight.budget or None,
            "consent": encode("cns", preflight.consent.id) if preflight.consent else None,
            "obligations": preflight.obligations,
        }
        said |= {"refused_at": preflight.refused_at or None, "steps": describe_steps(preflight, self.log)}
        if (demand := preflight.model_demand) is not None:
            fallbacks = [each.decision_context.tool for each in preflight.fallbacks]
            rest["model"] = demand.to_json() | {"fallbacks": fallbacks, "left_out": preflight.left_out}
            rest["model"] |= {"masked": dict(sent.masked)} if (sent := preflight.sent_data) else {}
        return said | rest | {"profile_explanation": preflight.explanation}


REST = ("version", "profile", "profile_hash", "policy", "budget_snapshot", "consent", "obligations")


def request_preflight(call: CallRequest, *, by: Principal) -> PreflightResult:
    """All steps of one call, also after one that refuses. Raises for a name that is no tool."""
    preflight, log = services.preflight_call(call, by=by, everything=True)
    reason = preflight.problem.reason if preflight.problem else ""
    tally_request(Kind.INVOCATION_PREFLIGHTED, tenant_id=by.tenant_id, agent=by.id, tool=call.tool, reason=reason)
    return PreflightResult(call, preflight.problem, preflight, log)


def request_preflights(calls: Sequence[CallRequest], *, by: Principal) -> list[PreflightResult]:
    """The same for each of several calls, in their order, as everything stands at one moment."""
    now, decision_contexts, found = database_time(), dict[str, "DecisionContext | Problem"](), []
    for call in (replace(each, envelope=name_person(each.envelope, by=by)) for each in calls):
        if call.tool not in decision_contexts:
            try:
                decision_contexts[call.tool] = services.find_decision_context(call.tool, by=by, now=now)
            except Problem as problem:
                decision_contexts[call.tool] = problem
        decision_context, log = decision_contexts[call.tool], StepLog(datetime.now(UTC))
        if isinstance(decision_context, Problem):
            found.append(PreflightResult(call, decision_context, None, log))
            continue
        preflight = run_preflight(call, decision_context, compute_fingerprints(call, by), log=log, everything=True)
        found.append(PreflightResult(call, preflight.problem, preflight, log))
    tally_request(Kind.INVOCATION_PREFLIGHTED, tenant_id=by.tenant_id, agent=by.id, times=len(calls))
    return found


def check_combined_budgets(asked: Iterable[PreflightResult]) -> dict[str, Any]:
    """Whether the budgets have room for all of the calls, with the most that each may take."""
    shares = [ChainShare(each.preflight.lines, each.preflight.demand) for each in asked if each.preflight is not None]
    sums = sum_shares(shares)
    short = [(line, takes) for line, takes in sums if line.used + line.reserved + takes > line.amount]
    return {
        "fits": not short,
        "budgets": [line.to_json(Demand()) | {"takes": takes} for line, takes in sums],
        "short": [line.wire_id for line, _ in short],
    }
