"""Agent runs: how one is accepted, cancelled and ended.

:func:`submit_run` decides whether the model may be asked at all, and then writes down the run, what was asked for and the fact that it
began, in one transaction. How it goes on from there: :mod:`invocations.agent_runs.orchestration`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Sum

from access.server_accounts.problems import AccountOfAnother
from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.agent_runs import AgentRunBegin, AgentRunEnd, CancelledAgentRun, RefusedAgentRun
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import ValuesErased
from invocations.accept.recorded_refusals import RecordedRefusal
from invocations.accept.repeated_submissions import find_first_submission
from invocations.agent_runs.limits import RunLimits
from invocations.agent_runs.models import (
    RUN_TRANSITIONS,
    STATE_OF_REASON,
    AgentRun,
    AgentRunEventKind,
    AgentRunState,
    StopReason,
)
from invocations.agent_runs.run_events import note_event
from invocations.calls import name_person
from invocations.kept_callers import build_kept_caller, describe_credential
from invocations.model_calls.asked_models import build_model_call, resolve_model_id
from invocations.models import FINAL, Invocation
from invocations.problems import IdempotencyKeyReused
from invocations.request_tallies import check_is_recorded
from invocations.run.cancellation import cancel_call
from invocations.services import preflight_call
from invocations.value_keys import get_callers_key
from kernel.canonical import encode_hash_input
from kernel.database.connections import database_time
from kernel.fault_injection import inject_fault
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import encode, new_id
from kernel.observability.telemetry import current_trace, read_trace_id
from kernel.problems import Conflict, Problem

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.calls import CallRequest
    from kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """What a run is for: the id of a model, and the arguments of a chat with it."""

    model: str
    arguments: dict[str, Any]
    limits: RunLimits

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, "arguments": self.arguments, "limits": self.limits.to_json()}


class SubmittedRun(NamedTuple):
    """``replayed``: the same question was accepted before, with the same key."""

    run: AgentRun
    replayed: bool = False


def _compute_fingerprints(question: RunQuestion, envelope: RequestEnvelope, *, by: Principal) -> dict[str, str]:
    said = question.to_json() | {
        "currency": envelope.currency,
        "locale": envelope.locale,
        "timezone": envelope.timezone,
    }
    return {
        "question_fingerprint": evidence.compute_fingerprint(encode_hash_input(said)[1], tenant_id=by.tenant_id),
        "user_fingerprint": evidence.compute_user_fingerprint(envelope.user_id, tenant_id=by.tenant_id),
    }


def _find_earlier(envelope: RequestEnvelope, fingerprints: dict[str, str], *, by: Principal) -> AgentRun | None:
    return find_first_submission(
        AgentRun.objects.all(),
        AgentRun.objects.visible_to(by),
        envelope,
        fingerprints,
        build_reused=lambda first: IdempotencyKeyReused(
            "This Idempotency-Key was used before with another run.",
            remedy="Use a new key for a new run.",
            details={"first_run": first.wire_id},
        ),
        hidden=AccountOfAnother("The first run with this Idempotency-Key has calls by another's account."),
        by=by,
    )


def submit_run(question: RunQuestion, envelope: RequestEnvelope, *, by: Principal) -> SubmittedRun:
    """Accept a run, or raise :class:`RecordedRefusal` with what is in the way of its first call. Nothing was asked by then."""
    question = replace(question, model=resolve_model_id(question.model, by=by))
    envelope = name_person(envelope, by=by)
    fingerprints = _compute_fingerprints(question, envelope, by=by)
    earlier = _find_earlier(envelope, fingerprints, by=by)
    if earlier is not None:
        return SubmittedRun(earlier, replayed=True)
    try:
        preflight, _ = preflight_call(build_first_call(question, envelope, by=by), by=by)
        if preflight.problem is not None:
            raise preflight.problem
    except Problem as problem:
        check_is_recorded(problem, by=by)
        _record_refused(question, envelope, fingerprints, problem, by=by)
        raise RecordedRefusal(problem) from problem
    try:
        return SubmittedRun(accept_run(question, envelope, by=by))
    except IntegrityError:
        earlier = _find_earlier(envelope, fingerprints, by=by)  # two raced with one key; the other has it
        if earlier is None:
            raise
        return SubmittedRun(earlier, replayed=True)


def build_first_call(question: RunQuestion, envelope: RequestEnvelope, *, by: Principal) -> CallRequest:
    """The first call of the model, as it will be made."""
    asked = replace(envelope, on_consent="refuse", idempotency_key="")
    return build_model_call(question.model, question.arguments, asked, operation="chat", by=by)


@transaction.atomic
def _record_refused(
    question: RunQuestion,
    envelope: RequestEnvelope,
    fingerprints: dict[str, str],
    problem: Problem,
    *,
    by: Principal,
) -> None:
    key = get_callers_key(fingerprints["user_fingerprint"], at=datetime.now(UTC), by=by)
    evidence.record(
        kind=Kind.AGENT_RUN_REFUSED,
        subject=encode("run", new_id()),
        actor=by,
        outcome="denied",
        reason=problem.reason,
        data=RefusedAgentRun(
            request_id=fingerprint_under(key, envelope.request_id.encode()), model=question.model[:128]
        ),
    )


@transaction.atomic
def accept_run(question: RunQuestion, envelope: RequestEnvelope, *, by: Principal) -> AgentRun:
    """Row, sealed question and fact, all or nothing. Whether its model may be asked is not looked at."""
    now, fingerprints = datetime.now(UTC), _compute_fingerprints(question, envelope, by=by)
    key = get_callers_key(fingerprints["user_fingerprint"], at=now, by=by)
    run = AgentRun.objects.create(
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        credential=describe_credential(by),
        model=question.model,
        limits=question.limits.to_json(),
        request_id=envelope.request_id,
        idempotency_key=envelope.idempotency_key,
        trace=current_trace(),
        values_key=key,
        deadline_at=database_time() + timedelta(seconds=question.limits.seconds),
        created_at=now,
        **fingerprints,
    )
    said = {"on_consent": envelope.on_consent, "purpose": envelope.purpose}
    snapshot = evidence.seal_values(
        tenant_id=by.tenant_id,
        invocation_id=run.pk,
        kind=SnapshotKind.INPUT,
        value={"question": question.to_json(), "envelope": envelope.context() | said},
        key=key,
    )
    evidence.record(
        kind=Kind.AGENT_RUN_BEGAN,
        subject=run.wire_id,
        actor=by,
        outcome="accepted",
        trace_id=read_trace_id(run.trace),
        at=now,
        data=AgentRunBegin(
            request_id=fingerprint_under(key, envelope.request_id.encode()),
            on_behalf_of=envelope.actor.get("type", ""),
            model=question.model,
            question=snapshot.to_commitment(),
            limits=question.limits.to_json(),
        ),
    )
    inject_fault("agent_run.before_commit")
    transaction.on_commit(partial(inject_fault, "agent_run.committed"))
    return run


# What was accepted, read again.


def open_question(run: AgentRun) -> tuple[RequestEnvelope, RunQuestion]:
    """As it was sent; only the hub itself looks, to make the next call."""
    snapshot = Snapshot.objects.filter(invocation_id=run.pk, kind=SnapshotKind.INPUT).first()
    if snapshot is None:
        raise ValuesErased()
    sealed = evidence.open_values(snapshot)
    said = sealed["question"]
    question = RunQuestion(said["model"], said["arguments"], RunLimits(**said["limits"]))
    return RequestEnvelope(**sealed["envelope"]), question


def build_run_principal(run: AgentRun) -> Principal:
    """The agent that submitted the run, with the credential that it had then."""
    return build_kept_caller(run.agent, run.credential)


def list_open_calls(run: AgentRun) -> list[Invocation]:
    """The calls of the run that have not ended."""
    return list(Invocation.objects.filter(run_step__run=run).exclude(state__in=FINAL).order_by("id"))


# Ending.


def check_can_cancel(run: AgentRun) -> None:
    if run.is_final or run.cancel_asked_at is not None:
        told = "is being ended already" if not run.is_final else f"is {run.state}"
        raise Conflict(f"This run {told}; only one that goes on can be cancelled.", details={"state": run.state})


@transaction.atomic
def cancel_run(*, run_id: UUID, by: Principal) -> AgentRun:
    """Make no more of its calls, and end those that are open."""
    rows = AgentRun.objects.visible_to(by).select_for_update(of=("self",))
    run = rows.select_related("agent").get(pk=run_id)
    check_can_cancel(run)
    run.cancel_asked_at = datetime.now(UTC)
    run.save(update_fields=["cancel_asked_at"])
    evidence.record(
        kind=Kind.AGENT_RUN_CANCEL_ASKED,
        subject=run.wire_id,
        actor=by,
        data=CancelledAgentRun(steps=run.steps.count()),
    )
    cancel_open_calls(run, by=by)
    return run


def cancel_open_calls(run: AgentRun, *, by: Principal) -> None:
    for call in list_open_calls(run):
        if call.cancel_asked_at is not None:
            continue
        try:
            with transaction.atomic():
                cancel_call(invocation_id=call.pk, by=by)
        except Conflict:
            pass  # it has ended at this moment


def end_run(run: AgentRun, why: StopReason, *, reason: str = "") -> None:
    """The final state and the fact, in the transaction of the caller, who has locked the row. ``reason``: of a problem."""
    to = STATE_OF_REASON.get(why, AgentRunState.STOPPED)
    assert to in RUN_TRANSITIONS[run.state]
    transaction.on_commit(partial(inject_fault, "agent_run_end.committed"))
    now, cost = datetime.now(UTC), sum_cost(run)
    run.state, run.stop_reason, run.reason, run.finished_at = to, why, reason, now
    run.save(update_fields=["state", "stop_reason", "reason", "finished_at"])
    evidence.record(
        kind=Kind.AGENT_RUN_ENDED,
        subject=run.wire_id,
        actor=build_run_principal(run),
        outcome=str(to),
        reason=reason,
        trace_id=read_trace_id(run.trace),
        at=now,
        data=AgentRunEnd(
            state=str(to),
            stop_reason=str(why),
            steps=_describe_steps(run),
            cost_micros=cost.micros,
            unpriced=cost.unpriced or None,
        ),
    )
    note_event(run, AgentRunEventKind.RUN_ENDED)
    inject_fault("agent_run_end.before_commit")


class RunCost(NamedTuple):
    """What the calls of a run have cost so far, in millionths of the currency, and how many of them have no price."""

    micros: int
    unpriced: int


def sum_cost(run: AgentRun) -> RunCost:
    sums = run.steps.aggregate(micros=Sum("cost_micros"), unpriced=Sum("unpriced"))
    return RunCost(sums["micros"] or 0, sums["unpriced"] or 0)


def _describe_steps(run: AgentRun) -> list[dict[str, Any]]:
    """What became of each step, and of the last call that was made for it."""
    calls = Invocation.objects.filter(run_step__run=run).only("run_step_id").order_by("id")
    last = {each.run_step_id: each.wire_id for each in calls}
    return [
        {
            "turn": step.turn,
            "role": step.role,
            "tool": step.tool,
            "state": step.state,
            "tries": step.tries,
            "reason": step.reason,
            "call": last.get(step.pk, ""),
        }
        for step in run.steps.order_by("position")
    ]
