"""Calls: how one is made, and what is answered.

:func:`begin_call` is the one way in for every caller: idempotency, preflight, acceptance. :func:`invoke_tool` also waits for
the end. What
may not run is written down all the same: each call of a known tool has one Begin and one End.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction

from access.budgets.rate_limits import check_rates, check_refused_call
from access.problems import ConsentRequired, RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from invocations.accept.begin_record import accept_call, record_denied
from invocations.answer.wake_ups import get_waker
from invocations.approvals.held_calls import (
    cancel_call,
    hold_call,
    needs_person,
    refuse_and_request_consent,
    run_full_preflight,
)
from invocations.callbacks.services import find_endpoint
from invocations.calls import AnsweredCall, BegunCall, CallRefused, CallRequest, compute_fingerprints
from invocations.decide.preflight import Preflight, run_preflight
from invocations.decide.rules import AnswerLook, check_again
from invocations.end.end_record import Ending, build_caller_principal, end_call
from invocations.models import FOR_WORK, Invocation, Origin, State
from invocations.problems import IdempotencyInProgress, IdempotencyKeyReused, QueueUnavailable
from invocations.queue import outbox, sweeper
from invocations.request_tallies import count_rejected
from invocations.step_log import StepLog
from kernel.database.connections import database_time, release_connection
from kernel.database.rows import PreparedQuery
from kernel.fault_injection import inject_fault
from kernel.ids import encode, new_id
from kernel.observability.log_context import note_for_log
from kernel.problems import Conflict, Problem
from registry.decision_context import load_decision_context
from registry.tools.callability import check_known

if TYPE_CHECKING:
    from invocations.answer.wake_ups import Waiter
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext

log = logging.getLogger("toolhub.calls")
REFUSED_AT = {"QUOTA": "quota", "POLICY": "consent"}  # the step of a problem that came up after them
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
        tenant_id=by.tenant_id, agent_id=by.agent(), key_id=by.key_id, tool=tool, now=now
    )
    check_known(decision_context)
    return decision_context


def preflight_call(call: CallRequest, *, by: Principal, everything: bool = False) -> tuple[Preflight, StepLog]:
    """Only the decision; nothing is written."""
    log = StepLog(datetime.now(UTC))
    decision_context = find_decision_context(call.tool, by=by)
    return run_preflight(call, decision_context, compute_fingerprints(call, by), log=log, everything=everything), log


def begin_call(call: CallRequest, *, by: Principal) -> BegunCall:
    """Decide on a call, write it down and ring for a worker. The one way in for every caller.

    Raises :class:`Refused` when the answer is no, and a plain problem when there is no tool of that name to call.
    """
    log = StepLog(datetime.now(UTC))
    decision_context = find_decision_context(call.tool, by=by)
    fingerprints = compute_fingerprints(call, by)
    preflight: Preflight | None = None
    id = new_id()
    note_for_log(call_id=encode("inv", id))
    try:
        if call.scope:
            by.check(call.scope)
        earlier = find_earlier(call, fingerprints, by=by)
        if earlier is not None:
            return begin_replay(earlier, decision_context, call, by=by)
        find_endpoint(call, by=by)
        preflight = run_preflight(call, decision_context, fingerprints, log=log)
        if needs_person(call, preflight):
            preflight, log = run_full_preflight(call, decision_context, fingerprints, log)
        held = call.envelope.on_consent == "hold" and isinstance(preflight.problem, ConsentRequired)
        if preflight.problem is not None and not held:
            raise preflight.problem
        if not held:
            check_rates(preflight.lines, take=True)
        inject_fault("call.decided")
        try:
            write = hold_call if held else accept_call
            begun = BegunCall(write(call, preflight, fingerprints, by=by, log=log, id=id))
        except IntegrityError as lost:
            earlier = find_earlier(call, fingerprints, by=by)  # two calls raced with one key; the other has it
            if earlier is None and not call.envelope.idempotency_key:
                raise
            if earlier is None:
                raise Conflict(
                    "The first call with this Idempotency-Key was given up at this moment.", remedy="Call again."
                ) from lost
            return begin_replay(earlier, decision_context, call, by=by)
    except Problem as problem:
        if preflight is not None and not preflight.refused_at:  # taken by another call after the preflight
            preflight.refused_at = REFUSED_AT.get(problem.reason.partition(".")[0], "")
        try:
            check_refused_call(by.id, because=problem)
        except RateLimited as refusal:
            count_rejected(by=by, reason=refusal.reason)
            raise
        if preflight is not None and problem is preflight.problem and needs_person(call, preflight):
            told, denied = refuse_and_request_consent(call, preflight, fingerprints, by=by, log=log)
            raise CallRefused(told, denied, preflight) from problem
        denied = record_denied(
            call, problem, fingerprints, by=by, decision_context=decision_context, preflight=preflight, log=log
        )
        raise CallRefused(problem, denied, preflight) from problem
    inject_fault("accept.committed")
    if held:
        begun.notices = find_request_notices(call, before=id, by=by)
        return begun
    assert preflight.version is not None
    later = call.respond_async or preflight.version.manifest.is_async  # the caller counts on fetching the answer
    if at_most_s := compute_wait_s(call, later=later):
        begun.listen(at_most_s=at_most_s)
    if call.chain_step is None:  # of a chain's call the message is sent when the chain's turn is committed
        try:
            enqueue_call(begun.invocation, somebody_waits=not later)
            inject_fault("ring.sent")
            begun.notices = find_request_notices(call, before=id, by=by)
        except BaseException:
            begun.close()
            raise
    return begun


OF_REQUEST = PreparedQuery(
    lambda agent, request, before: (
        Invocation.objects.filter(agent_id=agent, request_id=request, id__lt=before)
        .exclude(state=State.DENIED)
        .order_by("-id")[:1]
    ),
    agent=UUID,
    request=str,
    before=UUID,
)


def find_request_notices(call: CallRequest, *, before: UUID, by: Principal) -> tuple[str, ...]:
    """Whoever thinks that a request_id makes a call once is told, since the tool has run again. Asked while a worker is at it.

    With an Idempotency-Key the caller has said what is to happen; calls of one dispatch or chain share their request_id, and that of
    a call over MCP is the hub's own. The call was accepted: where nobody can say, it goes on without.
    """
    if call.envelope.idempotency_key or call.chain_step is not None or call.origin is Origin.MCP:
        return ()
    try:
        earlier = OF_REQUEST.first(agent=by.agent(), request=call.envelope.request_id, before=before)
    except DatabaseError as error:
        log.warning("Whether a request_id was used before is not known: %s", error)
        return ()
    if earlier is None:
        return ()
    return (
        f"This request_id was used before, by the call {earlier.wire_id}, and this is another call. A request_id only finds a call "
        "again; to have a call that is sent twice made once, send an Idempotency-Key.",
    )


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
    found = FOR_WORK.get(pk=begun.invocation.pk)
    if not found.is_final and sweeper.is_overdue(found, database_time()) and sweeper.close_overdue_call(found.pk):
        found.refresh_from_db()
    if not found.is_final and not last:
        inject_fault("wait.looked")
        return None
    if begun.replay is not None and found.is_final:
        begun.replay(found)
    return AnsweredCall(found, replayed=begun.replay is not None, notices=begun.notices)


def get_answer(begun: BegunCall) -> AnsweredCall:
    """What has become of the call by now."""
    found = find_answer(begun, last=True)
    assert found is not None
    return found


def begin_replay(
    earlier: Invocation, decision_context: DecisionContext, call: CallRequest, *, by: Principal
) -> BegunCall:
    """Let an earlier call with the same key stand for this one. One that has not ended is waited for when the caller says so."""
    note_for_log(call_id=earlier.wire_id)
    if not earlier.is_final and (call.wait_s is None or earlier.state == State.HELD):
        raise build_in_progress_problem(earlier)
    check_again(AnswerLook(decision_context, earlier, call))  # who lost the permission since gets nothing
    begun = BegunCall(earlier, replay=partial(record_replay, by=by))
    if not earlier.is_final:
        begun.listen(at_most_s=compute_wait_s(call))
    return begun


@transaction.atomic
def record_replay(earlier: Invocation, *, by: Principal) -> None:
    """That a finished call was answered again is a fact of its own."""
    evidence.record(
        kind=Kind.INVOCATION_REPLAYED,
        subject=earlier.wire_id,
        actor=by,
        tool=earlier.tool,
        data={"state": earlier.state},
    )


def enqueue_call(invocation: Invocation, *, somebody_waits: bool) -> None:
    """Send the message of an accepted call. When the broker does not answer and somebody waits, cancel the call rather than run it
    later unasked; a caller who fetches the answer later was promised one, and the call is rung for again.

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
