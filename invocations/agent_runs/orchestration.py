"""Run orchestration: how an agent run goes on.

By its rows, as a chain does: whoever sees that none of its calls is open takes it one turn further. A turn is one transaction that
locks the run's row, notes what became of the calls before, and decides on and writes down the next: one of the model, or all that
its answer proposed. A crash at any point leaves either the whole turn or nothing of it. While a call waits for a person nothing of
the run exists but rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, Sum
from django.dispatch import receiver

from access.problems import RateLimited, TooManyAtOnce
from evidence.kinds import ENDS
from evidence.leaves.call_ends import End
from evidence.models import Fact
from invocations import services
from invocations.agent_runs.conversation import build_messages, list_proposals, read_answer
from invocations.agent_runs.limits import RunLimits
from invocations.agent_runs.models import (
    AgentRun,
    AgentRunEventKind,
    AgentRunState,
    AgentRunStep,
    AgentRunStepRole,
    AgentRunStepState,
    StopReason,
)
from invocations.agent_runs.run_events import note_event
from invocations.agent_runs.services import (
    build_run_principal,
    cancel_open_calls,
    end_run,
    list_open_calls,
    open_question,
)
from invocations.answer.prefer_header import Preferences
from invocations.calls import CallRefused, compute_fingerprints
from invocations.dispatch.services import MAX_CALLS, build_call
from invocations.model_calls.asked_models import build_model_call
from invocations.model_calls.background_runs import start_background_run
from invocations.models import FINAL, Invocation, State
from invocations.queue import outbox
from invocations.signals import call_ended
from kernel.database.connections import database_time
from kernel.fault_injection import inject_fault
from kernel.loops import repeat_work
from kernel.observability.telemetry import extract_context, tracer
from kernel.problems import Internal, Problem
from llm.answers import FinishReason

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from uuid import UUID

    from invocations.agent_runs.services import RunQuestion
    from invocations.calls import BegunCall, CallRequest
    from kernel.http.envelopes import RequestEnvelope
    from unitools.calls import ToolCall

log = logging.getLogger("toolhub.agent_runs")
EVERY_S = 1.0
BATCH = 50
MODEL_TRIES = (
    2  # a model's call that a crash has cut off is made once more; it may be paid twice, and has no other effect
)
SHORTEST_WAIT_S = 2  # for a place or a rate
STOPS = {FinishReason.LENGTH: StopReason.LENGTH, FinishReason.SAFETY: StopReason.SAFETY}


class _Wait(Exception):
    """The call may not be made yet; nothing of it is kept."""

    def __init__(self, problem: Problem) -> None:
        self.seconds = max(SHORTEST_WAIT_S, problem.retry_after or 0)


class _Stop(Exception):
    """A limit of the run stands in the way of the call; nothing of it is kept."""

    def __init__(self, why: StopReason) -> None:
        self.why = why


def continue_run(run_id: UUID) -> None:
    """Take as many turns as can be taken now. What goes wrong with the database is left to the loop."""
    inject_fault("turn.due")
    try:
        while advance_run(run_id):
            pass
    except (OperationalError, InterfaceError) as error:
        log.warning("An agent run goes on with the next pass: %s", error)
    except Problem as problem:  # what it would go on with was erased, or is kept no longer
        abandon_run(run_id, reason=problem.reason)
    except Exception:
        log.exception("An agent run cannot go on and is ended")
        abandon_run(run_id)


@receiver(call_ended, sender=Invocation)
def follow_call(*, invocation: Invocation, **_: object) -> None:
    """When the End of a call is committed, its run goes on at once, in the process that wrote it."""
    if invocation.run_step is not None:
        transaction.on_commit(partial(continue_run, invocation.run_step.run_id), robust=True)


@transaction.atomic
def advance_run(run_id: UUID) -> bool:
    """One turn. True when another may follow: false while a call is open, at the end, and when somebody else has the run."""
    rows = AgentRun.objects.select_for_update(of=("self",), skip_locked=True).select_related("agent")
    run = rows.filter(pk=run_id, state=AgentRunState.RUNNING).first()
    if run is None:
        return False
    steps = list(run.steps.order_by("position"))
    calls = {step.pk: _find_last_call(step) for step in steps}
    for step in steps:
        call = calls[step.pk]
        if step.state == AgentRunStepState.RUNNING and call is not None and call.is_final:
            _note_outcome(run, step, call)
            inject_fault("turn.noted")
    now = database_time()
    if run.cancel_asked_at is not None:
        _end_early(run, steps, StopReason.CANCELLED)
    open_calls = list_open_calls(run)
    _note_pause(run, open_calls)
    if run.paused_at is None and run.deadline_at <= now:
        _end_early(run, steps, StopReason.SECONDS)
        open_calls = list_open_calls(run)
    if not open_calls and any(step.state == AgentRunStepState.RUNNING for step in steps):
        return True  # a call has ended since it was read above; what became of it is noted before anything is decided
    if run.stop_reason:
        if not open_calls:
            end_run(run, StopReason(run.stop_reason), reason=run.reason)
        return False
    if run.next_at is not None and run.next_at > now:
        return False
    waiting = [step for step in steps if step.state == AgentRunStepState.WAITING]
    if not waiting and not open_calls:
        waiting = _plan_turn(run, steps, calls)
    return bool(waiting) and _make_calls(run, waiting, steps, calls)


def _find_last_call(step: AgentRunStep) -> Invocation | None:
    rows = Invocation.objects.filter(run_step=step).select_related("version__tool", "values_key__tenant_key")
    return rows.order_by("-id").first()


def _note_outcome(run: AgentRun, step: AgentRunStep, call: Invocation) -> None:
    """What became of the step, and what it has cost. A model's call that a crash has cut off is made once more."""
    is_model = step.role == AgentRunStepRole.MODEL
    step.state = AgentRunStepState.SUCCEEDED if call.state == State.SUCCEEDED else AgentRunStepState.FAILED
    step.reason = call.reason
    cost = _find_cost(step, call)
    step.cost_micros, step.reserved_micros = step.cost_micros + (cost or 0), 0
    step.unpriced += cost is None
    if is_model and call.state == State.OUTCOME_UNKNOWN and step.tries < MODEL_TRIES:
        step.state, step.tries = AgentRunStepState.WAITING, step.tries + 1
    step.save(update_fields=["state", "reason", "tries", "cost_micros", "reserved_micros", "unpriced"])
    note_event(run, AgentRunEventKind.MODEL_ANSWERED if is_model else AgentRunEventKind.TOOL_ENDED, step)


def _find_cost(step: AgentRunStep, call: Invocation) -> int | None:
    """What a call that has ended has cost, in millionths: as its End says; what nobody has measured counts as reserved. None: its
    model has no price.
    """
    if call.started_at is None:
        return 0
    fact = Fact.objects.of_calls(call.pk).filter(tenant_id=call.tenant_id, kind__in=ENDS).first()
    end = End.from_data(fact.content.get("data")) if fact is not None else None
    if end is None:
        return step.reserved_micros
    if end.budget is not None and end.budget.released:
        return 0
    if end.model is not None and end.model.cost_micros is None:
        return None
    if end.budget is not None and "money" in end.budget.spent:
        return int(end.budget.spent["money"])
    return end.model.cost_micros if end.model is not None else step.reserved_micros


def _note_pause(run: AgentRun, open_calls: Iterable[Invocation]) -> None:
    """While a call waits for a person the limit of seconds does not run."""
    is_paused = any(call.state == State.HELD for call in open_calls)
    if is_paused and run.paused_at is None:
        run.paused_at = database_time()
    elif not is_paused and run.paused_at is not None:
        run.deadline_at += database_time() - run.paused_at
        run.paused_at = None
    else:
        return
    run.save(update_fields=["paused_at", "deadline_at"])


def _end_early(run: AgentRun, steps: list[AgentRunStep], why: StopReason) -> None:
    """Make no more calls and end those that are open; the run ends with the last of them."""
    if not run.stop_reason:
        run.stop_reason = why
        run.save(update_fields=["stop_reason"])
    for step in steps:
        if step.state == AgentRunStepState.WAITING:
            step.state = AgentRunStepState.SKIPPED
            step.save(update_fields=["state"])
    cancel_open_calls(run, by=build_run_principal(run))


# What comes next.


def _plan_turn(run: AgentRun, steps: list[AgentRunStep], calls: dict[UUID, Invocation | None]) -> list[AgentRunStep]:
    """The steps of the next turn; none where the run has been ended. None of its calls is open."""
    limits, last = RunLimits(**run.limits), steps[-1] if steps else None
    if last is None or last.role == AgentRunStepRole.TOOL:
        if any(step.role == AgentRunStepRole.TOOL and _is_unknown(calls[step.pk]) for step in steps):
            # A model that is told so would propose the same again, which might have it done twice.
            return _end(run, StopReason.OUTCOME_UNKNOWN)
        return _plan_question(run, position=len(steps), turn=last.turn + 1 if last else 1)
    if last.state == AgentRunStepState.FAILED:
        return _end(run, StopReason.MODEL_FAILED, reason=last.reason)
    call = calls[last.pk]
    assert call is not None
    answer = read_answer(call)
    proposals = list_proposals(answer)
    if not proposals:
        return _end(run, STOPS.get(FinishReason(answer["finish_reason"]), StopReason.FINISHED))
    if len(proposals) > MAX_CALLS:
        return _end(run, StopReason.MANY_CALLS)
    if last.turn >= limits.steps:
        return _end(run, StopReason.STEPS)  # nobody would be told what they answer
    if _count_equal(run, proposals, limits):
        return _end(run, StopReason.EQUAL_CALLS)
    return AgentRunStep.objects.bulk_create(
        AgentRunStep(
            run=run, position=last.position + place, turn=last.turn, role=AgentRunStepRole.TOOL, tool=each.name[:128]
        )
        for place, each in enumerate(proposals, 1)
    )


def _is_unknown(call: Invocation | None) -> bool:
    return call is not None and call.state == State.OUTCOME_UNKNOWN


def _end(run: AgentRun, why: StopReason, *, reason: str = "") -> list[AgentRunStep]:
    end_run(run, why, reason=reason)
    return []


def _plan_question(run: AgentRun, *, position: int, turn: int) -> list[AgentRunStep]:
    return [
        AgentRunStep.objects.create(run=run, position=position, turn=turn, role=AgentRunStepRole.MODEL, tool=run.model)
    ]


def _count_equal(run: AgentRun, proposals: list[ToolCall], limits: RunLimits) -> bool:
    """Whether one of the proposals was made as often as it may be, counted with those before it in this answer."""
    envelope, _ = open_question(run)
    by, seen = build_run_principal(run), Counter[tuple[str, str]]()
    for proposed in proposals:
        call = _build_tool_call(proposed, envelope)
        fingerprint = compute_fingerprints(call, by)["arguments_fingerprint"]
        seen[call.tool, fingerprint] += 1
        made = Invocation.objects.filter(run_step__run=run, tool=call.tool, arguments_fingerprint=fingerprint)
        if made.count() + seen[call.tool, fingerprint] > limits.equal_calls:
            return True
    return False


# Making the calls.


def _make_calls(
    run: AgentRun,
    waiting: list[AgentRunStep],
    steps: list[AgentRunStep],
    calls: dict[UUID, Invocation | None],
) -> bool:
    """Begin the calls of these steps, beside each other. True where none of them goes on, so that the next turn may follow."""
    asked = open_question(run)
    transaction.on_commit(partial(inject_fault, "turn.committed"))  # before those that ask a model and tell workers
    run.next_at, goes_on = None, False
    for step in waiting:
        try:
            with transaction.atomic():
                if step.role == AgentRunStepRole.MODEL:
                    call = _build_model_call(run, step, [each for each in steps if each is not step], calls, asked)
                else:
                    call = _build_step_call(step, steps, calls, asked[0])
                goes_on |= _make_call(run, step, call)
        except _Wait as wait:
            run.next_at, goes_on = database_time() + timedelta(seconds=wait.seconds), True
        except _Stop as stop:
            _end_early(run, waiting, stop.why)
            goes_on = bool(list_open_calls(run))
            break
    run.save(update_fields=["next_at"])
    _note_pause(run, list_open_calls(run))
    inject_fault("turn.before_commit")
    return not goes_on


def _build_model_call(
    run: AgentRun,
    step: AgentRunStep,
    before: list[AgentRunStep],
    calls: dict[UUID, Invocation | None],
    asked: tuple[RequestEnvelope, RunQuestion],
) -> CallRequest:
    envelope, question = asked
    messages = build_messages(question.arguments["messages"], before, calls)
    arguments = question.arguments | {"messages": messages}
    keyed = replace(envelope, on_consent="refuse", idempotency_key=step.key)
    call = build_model_call(question.model, arguments, keyed, operation="chat", by=build_run_principal(run))
    return replace(call, scope="", run_step=step)  # the caller showed its scopes when the run was accepted


def _build_tool_call(proposed: ToolCall, envelope: RequestEnvelope) -> CallRequest:
    return build_call(proposed, envelope=envelope, scope="", prefers=Preferences(respond_async=True))


def _build_step_call(
    step: AgentRunStep,
    steps: list[AgentRunStep],
    calls: dict[UUID, Invocation | None],
    envelope: RequestEnvelope,
) -> CallRequest:
    """The call of a tool, as the last answer of the model proposes it, and with a link to that answer."""
    asked = next(each for each in reversed(steps) if each.role == AgentRunStepRole.MODEL)
    answered = calls[asked.pk]
    assert answered is not None
    proposed = list_proposals(read_answer(answered))[step.position - asked.position - 1]
    call = _build_tool_call(proposed, replace(envelope, proposed_by={"invocation": answered.wire_id}))
    key = step.key if call.unusable is None else ""
    return replace(call, run_step=step, envelope=replace(call.envelope, idempotency_key=key))


def _make_call(run: AgentRun, step: AgentRunStep, call: CallRequest) -> bool:
    """Decide on a call and write it down, as any call. True where it goes on; a refused one of a tool is told the model."""
    begun, problem = _begin(run, step, call)
    is_model = step.role == AgentRunStepRole.MODEL
    if begun is None:
        assert problem is not None
        step.state, step.reason = AgentRunStepState.FAILED, problem.reason
        step.save(update_fields=["state", "reason"])
        if is_model:
            run.stop_reason, run.reason = StopReason.REFUSED, problem.reason
            run.save(update_fields=["stop_reason", "reason"])
        else:
            note_event(run, AgentRunEventKind.TOOL_ENDED, step)
        return False
    step.state, step.reserved_micros = AgentRunStepState.RUNNING, begun.demand.money if begun.demand else 0
    step.save(update_fields=["state", "tries", "reserved_micros"])
    invocation = begun.invocation
    if is_model:
        transaction.on_commit(partial(start_background_run, begun), robust=True)
        note_event(run, AgentRunEventKind.MODEL_ASKED, step)
        return True
    if invocation.state == State.QUEUED:
        transaction.on_commit(partial(outbox.notify_workers, invocation), robust=True)
    is_held = invocation.state == State.HELD
    note_event(run, AgentRunEventKind.TOOL_HELD if is_held else AgentRunEventKind.TOOL_CALLED, step)
    return True


def _begin(run: AgentRun, step: AgentRunStep, call: CallRequest) -> tuple[BegunCall | None, Problem | None]:
    """The call, or why it may not be made; that it was refused is written down as for any."""
    try:
        with tracer.start_as_current_span("agent_run.step", context=extract_context(run.trace)):
            begun = services.begin_call(call, by=build_run_principal(run))
    except CallRefused as refused:
        if _may_wait(refused.problem):
            raise _Wait(refused.problem) from refused
        return None, refused.problem
    except Problem as problem:
        if _may_wait(problem):
            raise _Wait(problem) from problem
        return None, problem
    begun.close()
    most = sum_demand(run, but=step) + (begun.demand.money if begun.demand else 0)
    if not RunLimits(**run.limits).allows_cost(most):
        raise _Stop(StopReason.MONEY)
    return begun, None


def sum_demand(run: AgentRun, *, but: AgentRunStep) -> int:
    """What the run has cost, and what its open calls may cost at most, in millionths."""
    sums = run.steps.aggregate(cost=Sum("cost_micros"), reserved=Sum("reserved_micros", filter=~Q(pk=but.pk)))
    return (sums["cost"] or 0) + (sums["reserved"] or 0)


def _may_wait(problem: Problem) -> bool:
    return isinstance(problem, RateLimited | TooManyAtOnce) and problem.retry_after is not None


@transaction.atomic
def abandon_run(run_id: UUID, *, reason: str = Internal.reason) -> None:
    """A run cannot go on, perhaps for a reason that nobody has thought of; it is ended, so that it does not fail for ever."""
    rows = AgentRun.objects.select_for_update(of=("self",)).select_related("agent")
    run = rows.filter(pk=run_id, state=AgentRunState.RUNNING).first()
    if run is not None:
        cancel_open_calls(run, by=build_run_principal(run))
        end_run(run, StopReason.HUB_FAILED, reason=reason)


# The loop.


def find_due_runs() -> list[UUID]:
    """Runs of which no call is open, whose time is over, or that are to be cancelled: a turn of theirs was missed, or is due now."""
    now = database_time()
    open_calls = Invocation.objects.filter(run_step__run=OuterRef("pk")).exclude(state__in=FINAL)
    ready = ~Exists(open_calls) & Q(next_at=None) | Q(next_at__lte=now)
    over = Q(paused_at=None, deadline_at__lte=now)
    found = AgentRun.objects.filter(ready | over | Q(cancel_asked_at__isnull=False), state=AgentRunState.RUNNING)
    return list(found.order_by("id").values_list("pk", flat=True)[:BATCH])


def _pass() -> None:
    for run_id in find_due_runs():
        continue_run(run_id)


def run_agent_run_loop(stop: threading.Event) -> None:
    """Take agent runs on until told to stop."""
    repeat_work(_pass, stop, every_s=EVERY_S, what="Agent runs did not go on", log=log)
