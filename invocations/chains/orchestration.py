"""Orchestration: how a chain goes on.

By its rows: whoever sees that none of its calls is open takes it one turn further. A turn is one transaction that locks the
chain's row, notes what became of the last call, and decides on and writes down the next one, so that a crash at any point leaves
either the whole turn or nothing of it, and no step is made twice. The end of a call is the usual moment for a turn; a loop in
each worker finds the chains for which it was missed.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.dispatch import receiver

from access.problems import RateLimited, TooManyAtOnce
from evidence import services as evidence
from evidence.models import Snapshot, SnapshotKind
from invocations import services
from invocations.calls import CallRefused, CallRequest
from invocations.chains.models import CHAIN_OPEN, Chain, ChainState, ChainStep, StepRole, StepState
from invocations.chains.plan import MissingValue, format_pointer, resolve_pointer
from invocations.chains.problems import ValueMissing
from invocations.chains.services import build_chain_principal, end_chain, open_plan
from invocations.models import FINAL, Invocation, State
from invocations.queue import outbox
from invocations.signals import call_ended
from kernel.database.connections import database_time
from kernel.loops import repeat_work
from kernel.observability.telemetry import extract_context, tracer
from kernel.problems import Internal, Problem

if TYPE_CHECKING:
    import threading
    from uuid import UUID

    from invocations.chains.plan import Reference

log = logging.getLogger("toolhub.chains")
EVERY_S = 1.0
BATCH = 50
TRY_AGAIN = frozenset({State.FAILED, State.TIMED_OUT, State.OUTCOME_UNKNOWN})
MAX_PAUSE_S = 30
NO_PLACE = frozenset({RateLimited.reason, TooManyAtOnce.reason})
SHORTEST_WAIT_S = 2  # for a place or a rate, so that asking is not itself too much
LONGEST_WAIT = timedelta(days=1)  # then the step has failed: what a chain holds of budgets is not held for ever


class _Wait(Exception):
    """The call may not be made yet; nothing of it is kept."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.seconds = problem, max(SHORTEST_WAIT_S, problem.retry_after or 0)


def continue_chain(chain_id: UUID) -> None:
    """Take as many turns as can be taken now. What goes wrong with the database is left to the loop."""
    try:
        while advance_chain(chain_id):
            pass
    except (OperationalError, InterfaceError) as error:
        log.warning("A chain goes on with the next pass: %s", error)
    except Exception:
        log.exception("A chain cannot go on and is ended")
        abandon_chain(chain_id)


@receiver(call_ended, sender=Invocation)
def follow_call(*, invocation: Invocation, **_: Any) -> None:
    """When the End of a call is committed, its chain goes on at once, in the process that wrote it."""
    if invocation.chain_step is not None:
        transaction.on_commit(partial(continue_chain, invocation.chain_step.chain_id), robust=True)


@transaction.atomic
def advance_chain(chain_id: UUID) -> bool:
    """One turn. True when another may follow: false while a call is open, at the end, and when somebody else has the chain."""
    rows = Chain.objects.select_for_update(of=("self",), skip_locked=True).select_related("agent")
    chain = rows.filter(pk=chain_id, state__in=CHAIN_OPEN).first()
    if chain is None:
        return False
    steps = list(chain.steps.order_by("position"))
    made = next((step for step in steps if step.state == StepState.RUNNING), None)
    if made is not None:
        call = _last_call(made)
        if not call.is_final:
            return False
        _note(chain, made, call)
    step = _next(chain, steps)
    if step is None:
        return False
    if chain.next_at is not None and chain.next_at > database_time():
        return False
    return _make(chain, step)


def _last_call(step: ChainStep) -> Invocation:
    """The one that is open, or has succeeded, whatever the clocks said of the hosts that made them; else the newest."""
    calls = list(step.calls.order_by("id"))
    return max(calls, key=lambda call: (not call.is_final, call.state == State.SUCCEEDED, call.id))


def _note(chain: Chain, step: ChainStep, call: Invocation) -> None:
    """What became of the step: done, to be tried again, or failed."""
    step.reason = call.reason
    if call.state == State.SUCCEEDED:
        step.state = StepState.SUCCEEDED
    elif call.state in TRY_AGAIN and step.tries <= step.retries and (step.is_compensation or not chain.cancel_asked_at):
        step.state = StepState.WAITING
        # The next call of the step has the same key, so that the tool sees that it is the same.
        Invocation.objects.filter(pk=call.pk).update(idempotency_key="")
        _pause(chain, min(MAX_PAUSE_S, 2 ** (step.tries - 1)))
    elif call.reason in NO_PLACE and (step.is_compensation or not chain.cancel_asked_at):
        # A person agreed at a moment when there was no place. The consent is not used up, and the step waits for one.
        step.state, step.tries = StepState.WAITING, step.tries - 1
        _pause(chain, SHORTEST_WAIT_S)
    else:
        step.state = StepState.FAILED
    step.save(update_fields=["state", "reason", "tries"])


def _pause(chain: Chain, seconds: float) -> None:
    chain.next_at = database_time() + timedelta(seconds=seconds)
    chain.save(update_fields=["next_at"])


def _next(chain: Chain, steps: list[ChainStep]) -> ChainStep | None:
    """The call to make now; None when there is none, and then the chain has been ended."""
    forward = [step for step in steps if step.role == StepRole.STEP]
    stopped = chain.cancel_asked_at is not None or any(step.state == StepState.FAILED for step in forward)
    if chain.state == ChainState.RUNNING:
        waiting = [step for step in forward if step.state == StepState.WAITING]
        if not stopped and waiting:
            return waiting[0]
        if not stopped:
            end_chain(chain, steps, to=ChainState.SUCCEEDED, by=build_chain_principal(chain))
            return None
        _begin_to_undo(chain, steps)
    undo = [step for step in reversed(steps) if step.is_compensation and step.state == StepState.WAITING]
    if undo:
        return undo[0]
    to = ChainState.CANCELLED if chain.cancel_asked_at is not None else ChainState.FAILED
    end_chain(chain, steps, to=to, by=build_chain_principal(chain))
    return None


def _begin_to_undo(chain: Chain, steps: list[ChainStep]) -> None:
    """What was not done is skipped, and so is the undoing of it."""
    done = {step.position for step in steps if step.role == StepRole.STEP and step.state == StepState.SUCCEEDED}
    for step in steps:
        if step.state == StepState.WAITING and (step.role == StepRole.STEP or step.position not in done):
            step.state = StepState.SKIPPED
            step.save(update_fields=["state"])
    chain.next_at = None
    if any(step.state == StepState.WAITING for step in steps):
        chain.state = ChainState.COMPENSATING
    chain.save(update_fields=["state", "next_at"])


# Making a call.


def _make(chain: Chain, step: ChainStep) -> bool:
    """Decide on the call of a step and write it down, as any call; the message goes out when all of it is committed."""
    step.tries += 1
    try:
        with transaction.atomic(), tracer.start_as_current_span("chain.step", context=extract_context(chain.trace)):
            invocation, problem = _call(chain, step)
    except _Wait as wait:
        longest = LONGEST_WAIT * (2 if step.is_compensation else 1)  # the undoing begins after that of a step was over
        if database_time() - _last_event(chain) < longest:
            _pause(chain, wait.seconds)
            return False
        invocation, problem = None, wait.problem
    step.state = StepState.RUNNING if problem is None else StepState.FAILED
    step.reason = problem.reason if problem else ""
    step.save(update_fields=["state", "reason", "tries"])
    if invocation is not None and invocation.state == State.QUEUED:
        transaction.on_commit(partial(outbox.notify_workers, invocation), robust=True)
    return problem is not None


def _last_event(chain: Chain) -> datetime:
    """Since when nothing has happened in the chain but waiting."""
    ended = Invocation.objects.filter(chain_step__chain=chain).aggregate(at=Max("finished_at"))["at"]
    return ended or chain.created_at


def _call(chain: Chain, step: ChainStep) -> tuple[Invocation | None, Problem | None]:
    by = build_chain_principal(chain)
    try:
        envelope, plan = open_plan(chain)
        planned = plan.one(step.role, step.position)
        delivered: dict[str, Any] = {}
        arguments = planned.filled(partial(_value_of, chain, delivered))
        keyed = replace(envelope, idempotency_key=step.key)
        call = CallRequest(step.tool, arguments, keyed, respond_async=True, chain_step=step)
        with closing(services.begin_call(call, by=by)) as begun:
            return begun.invocation, None
    except CallRefused as refused:
        if _may_wait(refused.problem):
            raise _Wait(refused.problem) from refused
        return refused.invocation, refused.problem
    except Problem as problem:
        if _may_wait(problem):
            raise _Wait(problem) from problem
        return None, problem


def _may_wait(problem: Problem) -> bool:
    return isinstance(problem, (RateLimited, TooManyAtOnce)) and problem.retry_after is not None


def _value_of(chain: Chain, delivered: dict[str, Any], reference: Reference) -> Any:
    """What an earlier step has delivered at that place."""
    if reference.step not in delivered:
        calls = Invocation.objects.filter(
            chain_step__chain=chain,
            chain_step__role=StepRole.STEP,
            chain_step__name=reference.step,
            state=State.SUCCEEDED,
        )
        outputs = Snapshot.objects.filter(invocation_id__in=calls.values("pk"), kind=SnapshotKind.OUTPUT)
        output = outputs.first()
        if output is None:
            raise ValueMissing(f"What {reference.step} has delivered is not there any more.")
        delivered[reference.step] = evidence.open_values(output)["data"]
    try:
        return resolve_pointer(delivered[reference.step], reference.pointer)
    except MissingValue:
        raise ValueMissing(
            f"{reference.step} has delivered nothing at {format_pointer(reference.pointer)}.",
            details={"step": reference.step, "output": format_pointer(reference.pointer)},
        ) from None


@transaction.atomic
def abandon_chain(chain_id: UUID) -> None:
    """A chain cannot go on for a reason that nobody has thought of. What was done is undone; when that cannot be either, it is ended,
    so that it does not fail for ever.
    """
    rows = Chain.objects.select_for_update(of=("self",)).select_related("agent")
    chain = rows.filter(pk=chain_id, state__in=CHAIN_OPEN).first()
    if chain is None:
        return
    steps = list(chain.steps.order_by("position"))
    made = next((step for step in steps if step.state == StepState.RUNNING), None)
    if made is not None and (call := _last_call(made)).is_final:
        _note(chain, made, call)
    for step in steps:
        if step.state in (StepState.WAITING, StepState.RUNNING) and not step.is_compensation:
            step.state, step.reason = StepState.FAILED, Internal.reason
            step.save(update_fields=["state", "reason"])
            break
    if chain.state == ChainState.RUNNING:
        _begin_to_undo(chain, steps)
        if chain.state == ChainState.COMPENSATING:
            return
    end_chain(chain, steps, to=ChainState.FAILED, by=build_chain_principal(chain))


# The loop.


def find_due_chains() -> list[UUID]:
    """Chains of which no call is open: a turn of theirs was missed, or is to be taken now."""
    open_calls = Invocation.objects.filter(chain_step__chain=OuterRef("pk")).exclude(state__in=FINAL)
    ready = Q(next_at=None) | Q(next_at__lte=database_time()) | Q(cancel_asked_at__isnull=False)
    found = Chain.objects.filter(~Exists(open_calls), ready, state__in=CHAIN_OPEN).order_by("id")
    return list(found.values_list("pk", flat=True)[:BATCH])


def _pass() -> None:
    for chain_id in find_due_chains():
        continue_chain(chain_id)


def run_chain_loop(stop: threading.Event) -> None:
    """Take chains on until told to stop."""
    repeat_work(_pass, stop, every_s=EVERY_S, what="Chains did not go on", log=log)
