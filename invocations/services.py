"""Calls: how one is made, and what is answered.

:func:`begin_call` is the one way in for every caller: idempotency, preflight, acceptance. :func:`invoke_tool` also waits for
the end. What
may not run is written down all the same: each call of a known tool has one Begin and one End.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, transaction

from access.budgets.rate_limits import check_rates
from access.problems import RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.calls import RepeatedAnswer
from invocations.accept.begin_record import accept_call, record_denied
from invocations.accept.call_basis import load_call_basis
from invocations.answer.envelope import SEALED
from invocations.answer.wake_ups import get_waker
from invocations.approvals.call_requests import refuse_and_request
from invocations.approvals.held_calls import hold_call, needs_person, run_full_preflight
from invocations.callbacks.services import find_endpoint
from invocations.calls import (
    AnsweredCall,
    BegunCall,
    CallRefused,
    CallRequest,
    IncomingCall,
    compute_fingerprints,
    name_person,
)
from invocations.decide.decision import Acceptance, EarlierCall, Hold, Refusal, StepRefusal
from invocations.decide.looks import AnswerLook
from invocations.decide.preflight import Preflight, run_preflight
from invocations.decide.rules import check_again
from invocations.end.end_record import build_caller_principal, end_call
from invocations.end.endings import Ending
from invocations.models import FOR_WORK, Invocation, State
from invocations.problems import IdempotencyInProgress, IdempotencyKeyReused, QueueUnavailable
from invocations.queue import outbox, sweeper
from invocations.request_tallies import check_is_recorded
from invocations.run.cancellation import cancel_call
from invocations.run.sent_files import check_sent_files
from invocations.step_log import StepLog
from invocations.value_keys import write_under_key
from kernel.database.connections import database_time, release_connection
from kernel.database.rows import fetch_together
from kernel.fault_injection import inject_fault
from kernel.ids import encode, new_id
from kernel.observability.log_context import note_for_log
from kernel.problems import Conflict, Problem
from registry.decision_context import load_decision_context
from registry.tools.callability import check_known

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from evidence.models import Snapshot
    from invocations.accept.call_basis import BasisAhead
    from invocations.answer.wake_ups import Waiter
    from invocations.decide.decision import CallDecision
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext

log = logging.getLogger("toolhub.calls")
CANCEL_WAIT_S = 2.0  # a run ends within 250 ms of being told to


def find_earlier(call: CallRequest, fingerprints: dict[str, str], *, by: Principal) -> Invocation | None:
    """The call that has this idempotency key already; raises when it was made with other arguments."""
    if not call.envelope.idempotency_key:
        return None
    earlier = (
        Invocation.objects.visible_to(by)
        .for_work()
        .filter(
            tool=call.tool,
            idempotency_key=call.envelope.idempotency_key,
            user_fingerprint=fingerprints["user_fingerprint"],
        )
        .first()
    )
    if earlier is None or free_key(earlier):
        return None
    if earlier.arguments_fingerprint != fingerprints["arguments_fingerprint"]:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used before with other arguments.",
            remedy="Use a new key for a new call.",
            details={"first_call": earlier.wire_id},
        )
    return earlier


def free_key(earlier: Invocation) -> bool:
    """Whether the key of a call that has ended was kept long enough; then the next call may have it."""
    if not earlier.is_final or earlier.key_until is None or earlier.key_until > database_time():
        return False
    Invocation.objects.filter(pk=earlier.pk, key_until=earlier.key_until).update(idempotency_key="")
    return True


def build_in_progress_problem(earlier: Invocation) -> IdempotencyInProgress:
    waits = "waits for a person" if earlier.state == State.HELD else "is still running"
    return IdempotencyInProgress(
        f"The first call with this Idempotency-Key {waits}.",
        remedy=f"Wait for the end of {earlier.wire_id}, then make the same call again: it is answered with that one's answer.",
        details={"first_call": earlier.wire_id},
    )


def find_decision_context(tool: str, *, by: Principal, now: datetime | None = None) -> DecisionContext:
    """What decides about this caller and this tool; raises for a name that means nothing here."""
    decision_context = load_decision_context(
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        key_id=by.key_id,
        connection_id=by.connection.id if by.connection else None,
        tool=tool,
        now=now,
    )
    check_known(decision_context)
    return decision_context


def preflight_call(call: CallRequest, *, by: Principal, everything: bool = False) -> tuple[Preflight, StepLog]:
    """Only the decision; nothing is written."""
    log = StepLog(datetime.now(UTC))
    call = replace(call, envelope=name_person(call.envelope, by=by))
    decision_context = find_decision_context(call.tool, by=by)
    preflight = run_preflight(call, decision_context, compute_fingerprints(call, by), log=log, everything=everything)
    if preflight.problem is None and preflight.version is not None:
        try:
            check_sent_files(preflight.version.manifest, call, by=by)
        except Problem as problem:
            preflight.problem, preflight.refused_at = problem, "input_schema"
            preflight.problems["input_schema"] = problem
    return preflight, log


def begin_call(
    call: CallRequest,
    *,
    by: Principal,
    while_committing: Callable[[Invocation, Preflight], object] | None = None,
    ahead: BasisAhead | None = None,
) -> BegunCall:
    """Decide on a call, write it down and ring for a worker. The one way in for every caller. ``while_committing``: work for it in
    the meantime (:func:`kernel.database.connections.work_while_committing`), where it is accepted. ``ahead``: what was asked about it
    together with the caller's key.

    Raises :class:`CallRefused` when the answer is no, and a plain problem when there is no tool of that name to call.
    """
    log = StepLog(datetime.now(UTC))
    call = replace(call, envelope=name_person(call.envelope, by=by))
    fingerprints = compute_fingerprints(call, by)
    decision_context, key = load_call_basis(
        call.tool, fingerprints["user_fingerprint"], at=log.created_at, by=by, ahead=ahead
    )
    check_known(decision_context)
    incoming = IncomingCall(call, by, decision_context, fingerprints, new_id(), while_committing, key=key)
    note_for_log(call_id=encode("inv", incoming.id))
    decision = decide_call(incoming, log)
    if isinstance(decision, Acceptance | Hold):
        written = write_call(incoming, decision)
        if isinstance(written, Invocation):
            return announce_call(incoming, decision, written)
        decision = written
    if isinstance(decision, EarlierCall):
        return begin_replay(incoming, decision.invocation)
    raise record_refusal(incoming, decision) from decision.problem


def decide_call(incoming: IncomingCall, log: StepLog) -> CallDecision:
    """Whether an earlier call stands for this one; else what preflight says, and then whether it comes too fast."""
    call, by = incoming.call, incoming.by
    try:
        if call.scope:
            by.check(call.scope)
        earlier = find_earlier(call, incoming.fingerprints, by=by)
        if earlier is not None:
            return decide_replay(incoming, earlier)
        callback_id = find_endpoint(call, by=by)
        preflight = run_preflight(call, incoming.decision_context, incoming.fingerprints, log=log)
        if needs_person(call, preflight):
            preflight, log = run_full_preflight(call, incoming.decision_context, incoming.fingerprints, log)
    except Problem as problem:
        return Refusal(problem, log)
    asks_person = preflight.problem is not None and needs_person(call, preflight)
    if preflight.problem is None:
        try:
            check_rates(preflight.lines, take=True)
        except RateLimited as problem:
            return Refusal(problem, log, replace(preflight, refused_at="quota"))
    if preflight.version is not None and (preflight.problem is None or asks_person):
        try:
            check_sent_files(preflight.version.manifest, call, by=by)
        except Problem as problem:
            return Refusal(problem, log, replace(preflight, refused_at="input_schema"))
    if preflight.problem is not None:
        if asks_person and call.envelope.on_consent == "hold":
            return Hold(replace(preflight, refused_at=""), log, callback_id)
        return Refusal(preflight.problem, log, preflight, asks_person=asks_person)
    return Acceptance(preflight, log, callback_id)


def decide_replay(incoming: IncomingCall, earlier: Invocation) -> EarlierCall:
    """Whether the earlier call may stand for this one: it has ended or may be waited for, and nothing was taken back since."""
    if not earlier.is_final and (incoming.call.wait_s is None or earlier.state == State.HELD):
        raise build_in_progress_problem(earlier)
    check_again(AnswerLook(incoming.decision_context, earlier, incoming.call))
    note_for_log(call_id=earlier.wire_id)
    return EarlierCall(earlier)


def write_call(incoming: IncomingCall, decision: Acceptance | Hold) -> Invocation | EarlierCall | Refusal:
    """The row of the call, or what another call that was faster has made of it: a replay or a refusal."""
    inject_fault("call.decided")
    try:
        try:
            if isinstance(decision, Hold):
                return write_under_key(incoming, partial(hold_call, hold=decision))
            return write_under_key(incoming, partial(accept_call, acceptance=decision))
        except IntegrityError as lost:
            return follow_winner(incoming, lost)
    except StepRefusal as refusal:
        return Refusal(refusal.problem, decision.log, replace(decision.preflight, refused_at=refusal.step))
    except Problem as problem:
        return Refusal(problem, decision.log, decision.preflight)


def follow_winner(incoming: IncomingCall, lost: IntegrityError) -> EarlierCall:
    """Two calls raced with one key, and the other has it."""
    earlier = find_earlier(incoming.call, incoming.fingerprints, by=incoming.by)
    if earlier is not None:
        return decide_replay(incoming, earlier)
    if not incoming.call.envelope.idempotency_key:
        raise lost
    raise Conflict(
        "The first call with this Idempotency-Key was given up at this moment.", remedy="Call again."
    ) from lost


def record_refusal(incoming: IncomingCall, refusal: Refusal) -> CallRefused:
    """The refused call as its caller is told of it. It is written down, unless too many of this agent's are."""
    check_is_recorded(refusal.problem, by=incoming.by)
    if refusal.asks_person:
        refusal, denied = write_under_key(incoming, partial(refuse_and_request, refusal=refusal))
    else:
        denied = write_under_key(incoming, partial(record_denied, refusal=refusal))
    return CallRefused(refusal.problem, denied, refusal.preflight)


def announce_call(incoming: IncomingCall, decision: Acceptance | Hold, invocation: Invocation) -> BegunCall:
    """Wake a worker, once whoever waits for the end listens for it. For a held call there is nothing to do yet."""
    inject_fault("accept.committed")
    call, begun = incoming.call, BegunCall(invocation, demand=decision.preflight.demand)
    if invocation.state == State.RUNNING:
        # A model's, which no worker takes: whoever has made the call runs it.
        begun.preflight = decision.preflight
        return begun
    if isinstance(decision, Hold):
        begun.notices = incoming.earlier.find_notices(call, id=incoming.id, by=incoming.by)
        return begun
    assert decision.preflight.version is not None
    # The caller counts on fetching the answer.
    later = call.respond_async or decision.preflight.version.manifest.is_async
    if at_most_s := compute_wait_s(call, later=later):
        begun.listen(at_most_s=at_most_s)
    # Of a step the message is sent when its turn is committed.
    if not call.is_step:
        try:
            enqueue_call(invocation, somebody_waits=not later)
            inject_fault("ring.sent")
            begun.notices = incoming.earlier.find_notices(call, id=incoming.id, by=incoming.by)
        except BaseException:
            begun.close()
            raise
    return begun


def compute_wait_s(call: CallRequest, *, later: bool = False) -> float:
    """How long this caller is kept waiting, in seconds."""
    if call.wait_s is None:
        return 0.0 if later else settings.TOOLHUB_SYNC_WAIT_S
    return min(call.wait_s, settings.TOOLHUB_SYNC_WAIT_S)


def invoke_tool(call: CallRequest, *, by: Principal) -> AnsweredCall:
    """Make a call and wait for its end in this thread, as long as the caller may be kept waiting."""
    with closing(begin_call(call, by=by)) as begun:
        if begun.waiter is not None:
            wait_for_end(begun.invocation.pk, begun.waiter, at_most_s=begun.at_most_s)
        return get_answer(begun)


def find_answer(begun: BegunCall, *, last: bool) -> AnsweredCall | None:
    """What has become of the call; None while it goes on and its caller may be kept waiting: ``last`` says that it may not.

    That an earlier answer was read again is a fact of its own.
    """
    pk = begun.invocation.pk
    rows, sealed = fetch_together((FOR_WORK, {"pk": pk}), (SEALED, {"invocation_id": pk}))
    if not rows:
        raise Invocation.DoesNotExist  # what was old went while its caller waited
    found: Invocation = rows[0]
    values: list[Snapshot] | None = sealed
    if not found.is_final and sweeper.is_overdue(found, database_time()) and sweeper.close_overdue_call(found.pk):
        found.refresh_from_db()
        values = None
    if not found.is_final and not last:
        inject_fault("wait.looked")
        return None
    if begun.replay is not None and found.is_final:
        begun.replay(found)
    return AnsweredCall(found, replayed=begun.replay is not None, notices=begun.notices, sealed=values)


def get_answer(begun: BegunCall) -> AnsweredCall:
    """What has become of the call by now."""
    found = find_answer(begun, last=True)
    assert found is not None
    return found


def begin_replay(incoming: IncomingCall, earlier: Invocation) -> BegunCall:
    """Let the earlier call stand for this one. One that has not ended is waited for."""
    begun = BegunCall(earlier, replay=partial(record_replay, by=incoming.by))
    if not earlier.is_final:
        begun.listen(at_most_s=compute_wait_s(incoming.call))
    return begun


@transaction.atomic
def record_replay(earlier: Invocation, *, by: Principal) -> None:
    """That a finished call was answered again is a fact of its own."""
    evidence.record(
        kind=Kind.INVOCATION_REPLAYED,
        subject=earlier.wire_id,
        actor=by,
        tool=earlier.tool,
        data=RepeatedAnswer(state=earlier.state),
    )


def enqueue_call(invocation: Invocation, *, somebody_waits: bool) -> None:
    """Send the message of an accepted call. When the broker does not answer and somebody waits, cancel the call rather than run it
    later unasked; a caller who fetches the answer later was promised one, and another wake-up is sent.

    A broker may take a message and fail to say so: a call that a worker has claimed meanwhile is left to it.
    """
    if outbox.notify_workers(invocation) or not somebody_waits:
        return
    problem = QueueUnavailable(remedy="Try again in a few seconds. Nothing has run.")
    ending = Ending(state=State.CANCELLED, problem=problem, ran=False)
    end_call(invocation, ending, actor=build_caller_principal(invocation), attempt=0)


def cancel_and_wait(*, invocation_id: UUID, by: Principal) -> Invocation:
    """Cancel a call and give a run the moment that its end takes."""
    with get_waker().listen(invocation_id) as waiter:
        invocation = cancel_call(invocation_id=invocation_id, by=by)
        if not invocation.is_final:
            wait_for_end(invocation_id, waiter, at_most_s=CANCEL_WAIT_S)
            invocation.refresh_from_db()
    return invocation


def wait_for_end(invocation_id: UUID, waiter: Waiter, *, at_most_s: float) -> None:
    """Block until the call has ended or the time is over. No connection is held in between.

    When the call's time to be picked up or its lease has run out, the caller closes it itself, so that an answer does not
    depend on a sweeper being alive.
    """
    until = time.monotonic() + at_most_s
    while (left := until - time.monotonic()) > 0:
        row = Invocation.objects.only("state", "lease_until", "queue_deadline_at", "attempt").get(pk=invocation_id)
        if row.is_final or (sweeper.is_overdue(row, database_time()) and sweeper.close_overdue_call(invocation_id)):
            return
        release_connection()
        waiter.wait(left)
