"""Chain answers: what a caller gets to see of a chain, and of a plan that it only asks about.

Names, states and addresses: what a step has delivered is in the answer of its own call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.budgets.chain_reservations import sum_shares
from invocations.chains.models import StepRole
from invocations.chains.problems import ChainStopped
from invocations.models import Invocation, State
from kernel.http.envelopes import ResponseEnvelope
from kernel.observability.telemetry import read_trace_id
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from invocations.chains.models import Chain, ChainStep
    from invocations.chains.preflight import ExaminedCall, PlanExamination
    from kernel.problems import Problem


def group_calls_by_step(chain: Chain) -> dict[Any, list[Invocation]]:
    """The calls that were made for each step, the last one last."""
    found: dict[Any, list[Invocation]] = {}
    for call in Invocation.objects.filter(chain_step__chain=chain).select_related("version").order_by("id"):
        found.setdefault(call.chain_step_id, []).append(call)
    return found


def _step(step: ChainStep, calls: list[Invocation]) -> dict[str, Any]:
    last = calls[-1] if calls else None
    return {
        "id": step.name,
        "tool": step.tool,
        "state": step.state,
        "tries": step.tries,
        "reason": step.reason or None,
        "call": {
            "call_id": last.wire_id,
            "state": last.state,
            "url": f"/api/v1/invocations/{last.wire_id}",
        }
        if last
        else None,
    }


def build_chain_problem(chain: Chain, steps: list[ChainStep]) -> Problem | None:
    """Why a chain did not come to its end; None as long as it may, and when it did."""
    if not chain.reason:
        return None
    because = find_problem_class(chain.reason)
    failed = next((step for step in steps if step.reason and step.role == StepRole.STEP), None)
    undone = [step.state for step in steps if step.is_compensation and step.state != "skipped"]
    return ChainStopped(
        f"The step {failed.name} ended the chain: {because.title()}" if failed else "The chain was cancelled.",
        details={
            "step": failed.name if failed else None,
            "reason": chain.reason,
            "compensated": "none" if not undone else "all" if set(undone) == {"succeeded"} else "partly",
        },
    )


def build_chain_answer(chain: Chain) -> ResponseEnvelope:
    steps, calls = list(chain.steps.order_by("position")), group_calls_by_step(chain)
    waits = any(call.state == State.HELD for each in calls.values() for call in each)
    compensations = {step.position: step for step in steps if step.is_compensation}
    told = []
    for step in steps:
        if step.is_compensation:
            continue
        one = _step(step, calls.get(step.pk, []))
        if (undo := compensations.get(step.position)) is not None:
            one["compensation"] = _step(undo, calls.get(undo.pk, []))
        told.append(one)
    data = {
        "chain_id": chain.wire_id,
        "state": chain.state,
        "waits_for_a_person": waits,
        "cancel_asked": chain.cancel_asked_at is not None,
        "dry_run": chain.dry_run,
        "request_id": chain.request_id,
        "steps": told,
        "trace_id": read_trace_id(chain.trace) or None,
        "created_at": chain.created_at.isoformat(),
        "finished_at": chain.finished_at.isoformat() if chain.finished_at else None,
    }
    return ResponseEnvelope(data=data, error=build_chain_problem(chain, steps) if chain.is_final else None)


# A plan that was only asked about.


def _examined(each: ExaminedCall) -> dict[str, Any]:
    planned, preflight = each.planned, each.preflight
    return {
        "id": planned.name,
        "role": planned.role,
        "tool": planned.tool,
        "version": preflight.decision_context.installed.version or None
        if preflight is not None and preflight.decision_context.installed is not None
        else None,
        "allow": not each.problems,
        "problems": [problem.to_error() for problem in each.problems],
        "warnings": each.warnings,
        "arguments_known": not planned.references,
        "checks": [
            {
                "name": step["name"].removeprefix("preflight."),
                "status": step["status"],
                "ms": round(step["end_ms"] - step["begin_ms"], 3),
            }
            for step in each.log.steps
        ],
    }


def examination_json(examination: PlanExamination) -> dict[str, Any]:
    known = [each.share for each in examination.calls if each.version is not None]
    return {
        "allow": examination.problem is None,
        "problem": examination.problem.to_error() if examination.problem else None,
        "at": examination.at or None,
        "steps": [_examined(each) for each in examination.calls],
        "budgets": [
            {
                "budget": line.wire_id,
                "scope": line.scope,
                "of": line.label or None,
                "dimension": line.dimension,
                "remaining": line.remaining,
                "takes": amount,
            }
            for line, amount in sum_shares(known)
        ],
    }
