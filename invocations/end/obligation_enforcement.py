"""Obligation enforcement: what is done to a run's output before anybody gets it or it is kept.

The obligations of the policy that decided about the call: all of them on the output, the detectors among them also on what is said
beside it (warnings, the plan, problems, logs). The raw output is not stored; a keyed hash of it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from access.problems import ObligationFailed
from access.redaction import apply_detectors, apply_obligations
from invocations.artifacts.obligation_enforcement import enforce_artifact_obligations
from invocations.end.egress_report import replace_hosts
from invocations.end.endings import NOTHING, PLAN, Ending, split_plan
from invocations.models import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jsonschema_rs

    from access.redaction import ObligationResult
    from invocations.sandbox.base import RunOutcome
    from invocations.step_log import StepLog
    from kernel.problems import Problem

Obligations = list[dict[str, Any]]
STEP = "output.obligations"
# What a masked text need not be any more: these say how a text looks. Type, presence and choice must still hold.
LOOKS = frozenset({"format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"})


def still_matches_schema(validator: jsonschema_rs.Validator, value: Any) -> bool:
    """Whether an output that was valid before still is what the schema promises, but for how its texts look."""
    return all(error.kind.name in LOOKS for error in validator.iter_errors(value))


def _enforce_on_outcome(outcome: RunOutcome | None, obligations: Obligations) -> RunOutcome | None:
    if outcome is None:
        return None
    texts = (outcome.stdout, outcome.stderr, outcome.error_type, outcome.error_message, outcome.blocked)
    stdout, stderr, error_type, message, blocked = (apply_detectors(text, obligations) for text in texts)
    return replace(
        outcome,
        stdout=stdout,
        stderr=stderr,
        error_type=error_type,
        error_message=message,
        error_details=apply_detectors(outcome.error_details, obligations),
        blocked=blocked,
        attempts=tuple(apply_detectors(list(outcome.attempts), obligations)),
        connections=replace_hosts(outcome.connections, lambda host: str(apply_detectors(host, obligations))),
        report={},
        value=None,
        artifacts=(),
    )


def _enforce_on_problem(problem: Problem, obligations: Obligations) -> Problem:
    return type(problem)(
        apply_detectors(problem.detail, obligations),
        details=apply_detectors(problem.details, obligations),
        remedy=problem.remedy,
        retry_after_s=problem.retry_after,
    )


def _enforce_on_sources(sources: Sequence[dict[str, str]], obligations: Obligations) -> list[dict[str, str]]:
    """The hash stays: it is over what the tool named, and names nobody."""
    return [apply_detectors(source, obligations) | {"hash": source["hash"]} for source in sources]


def _failure(problem: ObligationFailed) -> list[dict[str, Any]]:
    named = problem.details["obligation"]
    return [{name: named[name] for name in ("action", "pointer", "detector") if name in named} | {"failed": True}]


def _delivered(ending: Ending, obliged: ObligationResult) -> Ending:
    value, plan = split_plan(obliged.value) if ending.post_execution_plan is not None else (obliged.value, None)
    return replace(ending, output=value, post_execution_plan=plan, obligations=obliged.applied)


def enforce_obligations(
    ending: Ending, obligations: Obligations, *, call_id: str, validator: jsonschema_rs.Validator, steps: StepLog
) -> Ending:
    """The ending as it may be delivered and kept. When an obligation cannot be carried out, the output is withheld: the call has
    failed, or, where the policy says ``degrade``, has succeeded and gives no data."""
    kept = replace(
        ending,
        problem=None if ending.problem is None else _enforce_on_problem(ending.problem, obligations),
        warnings=apply_detectors(ending.warnings, obligations),
        sources=_enforce_on_sources(ending.sources, obligations),
        outcome=_enforce_on_outcome(ending.outcome, obligations),
    )
    if ending.output is NOTHING:
        return kept
    whole = ending.output
    if ending.post_execution_plan is not None:
        whole = ending.output | {PLAN: ending.post_execution_plan}
    if ending.raw is NOTHING:  # else it was repaired, and this is no longer what the tool returned
        kept.raw = whole

    def is_valid(value: Any) -> bool:
        return still_matches_schema(
            validator, split_plan(value)[0] if ending.post_execution_plan is not None else value
        )

    with steps.step(STEP) as told:
        try:
            obliged = apply_obligations(whole, obligations, call_id=call_id, is_valid=is_valid)
            artifacts, applied, said = enforce_artifact_obligations(ending.artifacts, obligations, call_id=call_id)
            delivered = _delivered(kept, obliged)
            return replace(
                delivered,
                artifacts=artifacts,
                obligations=[*delivered.obligations, *applied],
                warnings=[*delivered.warnings, *said],
            )
        except ObligationFailed as problem:
            told["status"] = "failed"
            withheld = replace(
                kept, output=NOTHING, post_execution_plan=None, artifacts=[], obligations=_failure(problem)
            )
            if problem.details["on_failure"] == "degrade":
                warning = f"The output was withheld: {problem.detail}"
                return replace(withheld, output=None, warnings=[*kept.warnings, warning])
            return replace(withheld, state=State.FAILED, problem=problem, warnings=[], ttl_seconds=None)
