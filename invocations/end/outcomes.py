"""Outcomes: what the end of a run means for the call.

Maps what the sandbox reports to a state and a problem, and checks a result before anybody gets it: output schema, the repairs that
the manifest allows, report, ``post_execution_plan`` passed through untouched.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from invocations import problems
from invocations.artifacts.description import describe_artifact
from invocations.artifacts.problems import ArtifactsTooLarge
from invocations.decide.input_validation import collect_findings
from invocations.end.endings import NOTHING, Ending, split_plan
from invocations.end.output_repair import repair_output
from invocations.end.problems import DOMAIN_PROBLEMS, ServerSaysError, ToolSaysUpstreamError
from invocations.end.service_outcomes import (
    build_service_ending,
    is_of_mcp_server,
    is_repeatable,
    is_service_result,
    is_unsent,
)
from invocations.metrics.call_metrics import count_validation
from invocations.models import State
from invocations.run.time_limits import build_load_timeout_problem, build_timeout_problem
from invocations.sandbox.base import IMAGE_MISSING, RunOutcome, RunStatus
from invocations.sandbox.results import ARTIFACTS, SCHEMA
from kernel.canonical import canonicalize
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from invocations.end.output_repair import RepairedOutput
    from invocations.sandbox.base import Limits
    from invocations.step_log import StepLog
    from kernel.problems import Problem
    from registry.models import ToolVersion
    from unitools.manifest import Manifest

MAX_REPAIRS_TOLD = 10
UNLIKE_SCHEMA = "The tool's result does not match its output schema."


def _resource(outcome: RunOutcome, what: str) -> Problem:
    return problems.ResourceExceeded(f"The tool was stopped: {what}.", details={"limit": str(outcome.status)})


def _domain(outcome: RunOutcome, manifest: Manifest) -> Problem:
    cls = DOMAIN_PROBLEMS.get(outcome.error_code)
    if cls is ToolSaysUpstreamError and is_of_mcp_server(manifest) and not is_repeatable(manifest):
        cls = ServerSaysError
    if cls is None:  # SPEC-6: no codes of their own
        return problems.ToolFailed(
            "The tool answered with an error code that is not in the catalogue.",
            details={"code": outcome.error_code[:64]},
        )
    return cls(outcome.error_message, details=outcome.error_details)


def classify_outcome(outcome: RunOutcome, *, version: ToolVersion) -> tuple[State, Problem]:
    """For every status but OK and TIMED_OUT."""
    match outcome.status:
        case RunStatus.DOMAIN_ERROR:
            return State.FAILED, _domain(outcome, version.view)
        case RunStatus.RAISED:
            return State.FAILED, problems.ToolFailed(
                "The tool raised an exception.",
                details={"error_type": outcome.error_type[:100]},
                remedy="The message is kept with the call's evidence, for whoever may reveal stored values: by default auditors.",
            )
        case RunStatus.LOAD_TIMED_OUT:
            return State.TIMED_OUT, build_load_timeout_problem(outcome)
        case RunStatus.OUT_OF_MEMORY:
            return State.FAILED, _resource(outcome, "it used more memory than it may")
        case RunStatus.LOG_FLOOD:
            return State.FAILED, _resource(outcome, "it wrote more output than it may")
        case RunStatus.RESULT_TOO_LARGE if outcome.error_code == ARTIFACTS:
            return State.FAILED, ArtifactsTooLarge(outcome.error_message, details={"limit": "limits.artifacts"})
        case RunStatus.RESULT_TOO_LARGE:
            return State.FAILED, _resource(outcome, "its result was larger than it may be")
        case RunStatus.BAD_RESULT if outcome.error_code == SCHEMA:
            pointers = outcome.error_details.get("pointers")
            return State.FAILED, problems.OutputInvalid(
                UNLIKE_SCHEMA, details={"pointers": pointers} if pointers else {}
            )
        case RunStatus.BAD_RESULT:
            return State.FAILED, problems.OutputInvalid(
                f"The tool returned something that is not JSON: {outcome.error_message[:200]}"
            )
        case RunStatus.EXITED:
            return State.FAILED, problems.ToolFailed("The tool's process ended without a result.")
        case RunStatus.CAPABILITY_BLOCKED:
            return State.FAILED, problems.CapabilityBlocked(
                f"The tool tried to use {outcome.blocked or 'something'}, which it was not granted, and was stopped.",
                details={"capability": outcome.blocked, "attempts": list(outcome.attempts[:20])},
                remedy="The tool's manifest must ask for this capability, and a grant and policy must allow it.",
            )
        case RunStatus.START_FAILED if outcome.error_code == IMAGE_MISSING:
            return State.FAILED, problems.ImageMissing(
                remedy="Operators: `make sandbox-images` on each worker host builds the images of this hub."
            )
        case RunStatus.START_FAILED:
            return State.FAILED, problems.SandboxStartFailed(
                remedy="Try again later. Operators: `make doctor` says what is wrong."
            )
        case RunStatus.CANCELLED if outcome.nothing_ran:
            return State.CANCELLED, problems.HubStopping(remedy="Call again. Nothing has run.")
        case RunStatus.CANCELLED:
            return State.CANCELLED, problems.RunCancelled(remedy=problems.find_cut_remedy(version))
        case _:
            return State.OUTCOME_UNKNOWN, problems.OutcomeUnknown(remedy=problems.find_cut_remedy(version))


def hash_sources(report: dict[str, Any]) -> list[dict[str, str]]:
    """The rules and documents that the tool named, each with a hash over its canonical form."""
    return [
        source | {"hash": "sha256:" + hashlib.sha256(canonicalize(source)).hexdigest()}
        for source in report.get("sources", [])
    ]


def _not_taken(outcome: RunOutcome) -> list[str]:
    """A tool's caller would else believe that all its files are kept."""
    count = len(outcome.skipped)
    return [f"Of what the tool left, {count} file{'s were' if count > 1 else ' was'} not kept."] if count else []


def _describe_repairs(repaired: RepairedOutput | None) -> list[str]:
    if repaired is None:
        return []
    places = [f"{repair.kind} at {repair.pointer or '/'}" for repair in repaired.repairs]
    more = len(places) - MAX_REPAIRS_TOLD
    said = ", ".join(places[:MAX_REPAIRS_TOLD]) + (f" and {more} more" if more > 0 else "")
    return [f"The tool's result did not match its output schema and was repaired: {said}."]


def _describe_deviations(findings: list[dict[str, Any]]) -> list[str]:
    """Where an answer is another than the document says; pointers only."""
    if not findings:
        return []
    places = [finding["pointer"] or "/" for finding in findings]
    more = len(places) - MAX_REPAIRS_TOLD
    said = ", ".join(places[:MAX_REPAIRS_TOLD]) + (f" and {more} more" if more > 0 else "")
    return [f"The service's answer does not match the schema of its document, at {said}. It was passed on as it is."]


def build_ending(
    version: ToolVersion,
    outcome: RunOutcome,
    steps: StepLog,
    *,
    limits: Limits,
    limiters: Mapping[str, str],
    counts: bool = True,
) -> Ending:
    """The ending of a run that the sandbox has reported, within ``limits``, which ``limiters`` have lowered.

    ``counts``: it is one of a call, and not made to compare.
    """
    if outcome.status is not RunStatus.OK:
        if ending := build_service_ending(version, outcome, steps):
            return ending
        is_asked = not is_unsent(version.view, outcome)
        if outcome.status is RunStatus.TIMED_OUT:
            state = State.TIMED_OUT
            problem: Problem = build_timeout_problem(
                outcome, limits, limiters=limiters, manifest=version.view, is_asked=is_asked
            )
        else:
            state, problem = classify_outcome(outcome, version=version)
        return Ending(
            state=state,
            problem=problem,
            outcome=outcome,
            ran=is_asked and not outcome.nothing_ran,
            steps=steps.steps,
            sources=hash_sources(outcome.report),
        )
    value, plan = split_plan(outcome.value)
    compiled = compiled_version(version.pk)
    with steps.step("output.validate") as told:
        findings = collect_findings(compiled.output_validator, value)
        if counts:
            count_validation("output", valid=not findings)
        if findings:
            told["status"] = "failed"
    repaired = None
    if findings and (allowed := compiled.manifest.output_repair):
        with steps.step("output.repair") as told:
            repaired = repair_output(value, compiled.manifest.output_schema, compiled.output_validator, allowed)
            if repaired is None:
                told["status"] = "failed"
    operation = version.view.operation
    is_loose = operation is not None and not operation["strict"] and is_service_result(value)
    if findings and repaired is None and not is_loose:
        # Pointers only: a message of the validator would quote the value.
        pointers = [finding["pointer"] for finding in findings]
        problem = problems.OutputInvalid(UNLIKE_SCHEMA, details={"pointers": pointers})
        return Ending(state=State.FAILED, problem=problem, outcome=outcome, steps=steps.steps)
    artifacts = []
    if outcome.artifacts:
        with steps.step("artifacts.describe"):
            artifacts = [describe_artifact(left) for left in outcome.artifacts]
    ttl = outcome.report.get("ttl_seconds")
    return Ending(
        state=State.SUCCEEDED,
        output=value if repaired is None else repaired.value,
        raw=NOTHING if repaired is None else outcome.value,
        repairs=[] if repaired is None else repaired.repairs,
        artifacts=artifacts,
        post_execution_plan=plan,
        warnings=[
            *outcome.report.get("warnings", []),
            *_not_taken(outcome),
            *_describe_repairs(repaired),
            *(_describe_deviations(findings) if repaired is None else ()),
        ],
        unlike_document=bool(findings) and repaired is None,
        ttl_seconds=version.view.ttl_seconds if ttl is None else ttl,
        sources=hash_sources(outcome.report),
        outcome=outcome,
        steps=steps.steps,
    )
