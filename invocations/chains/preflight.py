"""Chain preflight: whether a plan may be carried out, as far as that can be known before its first step.

For each call that it names: is the tool there and may it be called, are its own arguments right, does what earlier steps promise
fit where it is used, is there budget for the whole? Nothing is written here and nothing runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from access.budgets.chain_reservations import ChainShare, check_room
from access.problems import ConsentRequired, RateLimited, TooManyAtOnce
from access.server_accounts.problems import AccountRequired
from invocations import services
from invocations.calls import CallRequest, compute_fingerprints, name_person
from invocations.chains.models import StepRole
from invocations.chains.plan import Place, format_pointer
from invocations.chains.problems import RetryNeedsKey, StepsDoNotFit
from invocations.decide.preflight import Preflight, run_preflight
from invocations.end.endings import PLAN
from invocations.run.sent_files import check_sent_files
from invocations.step_log import StepLog
from kernel.database.connections import database_time
from kernel.problems import Problem, SchemaInvalid
from unitools.checks import describe_violation
from unitools.compatibility.assignability import AssignabilityCheck, Misfit

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.chains.plan import ChainPlan, PlannedCall
    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from registry.versions.compiler import CompiledVersion

# What is wrong with a list or an object whatever stands in place of its references.
DECIDED = {
    *("required", "additionalProperties", "dependentRequired", "propertyNames", "type"),
    *("minProperties", "maxProperties", "minItems", "maxItems"),
}


@dataclass(slots=True)
class ExaminedCall:
    """One call of the plan. ``problems``: what is in the way; ``warnings``: what will only be known when it is made."""

    planned: PlannedCall
    log: StepLog
    preflight: Preflight | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def version(self) -> CompiledVersion | None:
        return self.preflight.version if self.preflight else None

    @property
    def share(self) -> ChainShare:
        assert self.preflight is not None
        assert self.version is not None
        demand = self.preflight.demand
        if self.planned.references:  # as large as they may be
            demand = replace(demand, bytes_in=self.version.max_bytes_in)
        return ChainShare(self.preflight.lines, demand, 1 + self.planned.retries)


@dataclass(slots=True)
class PlanExamination:
    calls: list[ExaminedCall]
    problem: Problem | None = None  # the first that is in the way
    at: str = ""  # the step that it is about; empty: the whole

    @property
    def shares(self) -> list[ChainShare]:
        return [each.share for each in self.calls]


def examine_plan(plan: ChainPlan, envelope: RequestEnvelope, *, by: Principal) -> PlanExamination:
    """Look at every call of the plan, also after the first that is in the way."""
    found: list[ExaminedCall] = []
    fits: dict[tuple[UUID, UUID], AssignabilityCheck] = {}
    for planned in plan.calls:
        examined = ExaminedCall(planned, StepLog(datetime.now(UTC)))
        found.append(examined)
        try:
            examined.preflight = _preflight(planned, envelope, by=by, log=examined.log)
        except Problem as problem:  # there is no such tool
            examined.problems.append(problem)
            continue
        _sort_out(examined, envelope)
        if examined.version is not None:
            if planned.retries and examined.version.manifest.idempotency != "keyed":
                examined.problems.append(RetryNeedsKey(f"{planned.tool} does not honour its key."))
            _check_literals(examined, examined.version)
            if not examined.problems:
                _check_files(examined, examined.version, envelope, by=by)
            _check_references(examined, examined.version, found, fits)
    for each in found:
        if each.problems:
            return PlanExamination(found, _name_step(each), each.planned.at)
    try:
        check_room([each.share for each in found], database_time())
    except Problem as problem:
        return PlanExamination(found, problem)
    return PlanExamination(found)


def _name_step(examined: ExaminedCall) -> Problem:
    """The first problem of a call, saying which call it is."""
    problem, planned = examined.problems[0], examined.planned
    whose = f"compensation of {planned.name}" if planned.role == StepRole.COMPENSATION else f"step {planned.name}"
    return type(problem)(
        f"In the {whose}: {problem.detail}",
        details={**problem.details, "step": planned.name, "pointer": planned.at},
        remedy=problem.remedy,
        retry_after_s=problem.retry_after,
    )


def _preflight(planned: PlannedCall, envelope: RequestEnvelope, *, by: Principal, log: StepLog) -> Preflight:
    """The decision on the call by itself; of one whose arguments are not known yet, all that does not depend on them."""
    arguments = None if planned.references else planned.filled(lambda _: None)
    call = CallRequest(planned.tool, arguments, name_person(envelope, by=by))
    decision_context = services.find_decision_context(planned.tool, by=by)
    return run_preflight(call, decision_context, compute_fingerprints(call, by), log=log, everything=True)


def _sort_out(examined: ExaminedCall, envelope: RequestEnvelope) -> None:
    """Which problems of a preflight are in the way of the chain, and which only keep its call waiting."""
    assert examined.preflight is not None
    for problem in examined.preflight.problems.values():
        if isinstance(problem, AccountRequired) and envelope.on_consent == "hold":
            examined.warnings.append(
                "A person must connect their account when this step is made; the chain waits for that."
            )
        elif isinstance(problem, ConsentRequired) and envelope.on_consent == "hold":
            examined.warnings.append("A person must agree when this step is made; the chain waits for that.")
        elif isinstance(problem, (RateLimited, TooManyAtOnce)) and problem.retry_after is not None:
            examined.warnings.append(f"This step may have to wait: {problem.detail}")
        else:
            examined.problems.append(problem)


def _check_literals(examined: ExaminedCall, version: CompiledVersion) -> None:
    """What the caller has written down itself, with nothing where references stand."""
    planned = examined.planned
    if not planned.references:
        return  # preflight has seen all of it
    places = [reference.place for reference in planned.references]
    for error in version.input_validator.iter_errors(planned.filled(lambda _: None)):
        place: Place = tuple(error.instance_path)
        if any(place[: len(each)] == each for each in places):
            continue
        keyword = str(error.schema_path[-1]) if error.schema_path else ""
        if keyword not in DECIDED and any(each[: len(place)] == place for each in places):
            continue
        finding = {"pointer": planned.at + "/arguments" + format_pointer(place), "message": describe_violation(error)}
        examined.problems.append(
            SchemaInvalid(
                f"The arguments do not match the tool's input schema: {finding['message']} (at {format_pointer(place) or '/'})",
                details={"findings": [finding]},
            )
        )
        return


def _check_files(examined: ExaminedCall, version: CompiledVersion, envelope: RequestEnvelope, *, by: Principal) -> None:
    """Those whose ids the caller has written down itself, held against what its credential may read."""
    call = CallRequest(examined.planned.tool, examined.planned.filled(lambda _: None), envelope)
    try:
        check_sent_files(version.manifest, call, by=by)
    except Problem as problem:
        examined.problems.append(problem)


def _check_references(
    examined: ExaminedCall,
    version: CompiledVersion,
    others: list[ExaminedCall],
    fits: dict[tuple[UUID, UUID], AssignabilityCheck],
) -> None:
    producers = {each.planned.name: each.version for each in others if each.planned.role == StepRole.STEP}
    findings: list[dict[str, Any]] = []
    for reference in examined.planned.references:
        producer = producers.get(reference.step)
        if producer is None:
            continue  # that step has a problem of its own
        both = producer.id, version.id
        if both not in fits:
            fits[both] = AssignabilityCheck(producer.manifest.output_schema, version.manifest.input_schema)
        misfit = fits[both].misfit(reference.pointer, reference.place)
        if reference.pointer[:1] == (PLAN,):
            misfit = Misfit(f"{PLAN} is passed on beside the output and is no part of it.", certain=True)
        if misfit is None:
            continue
        at = examined.planned.at + "/arguments" + format_pointer(reference.place)
        if reference.assumed and not misfit.certain:
            examined.warnings.append(f"Assumed to be compatible, at {at}: {misfit.why}")
            continue
        findings.append(
            {
                "pointer": at,
                "message": misfit.why,
                "step": reference.step,
                "output": format_pointer(reference.pointer),
                "certain": misfit.certain,
            }
        )
    if findings:
        first = findings[0]
        where = f"{first['output'] or 'the output'} of {first['step']}"
        examined.problems.append(
            StepsDoNotFit(
                f"{where} does not fit at {first['pointer']}: {first['message']}", details={"findings": findings}
            )
        )
