"""How is a call made, and what is answered?

:func:`begin_call` is the one way in for every caller: idempotency, preflight, acceptance. :func:`invoke` also waits for the end. What
may not run is written down all the same: each call of a known tool has one Begin and one End.
"""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from access.budgets.rates import check_rates, check_refused_call
from access.coverage import check_granted
from access.models import Consent
from access.problems import ConsentRequired, RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from invocations import queue, sweeper
from invocations.acceptance import accept, record_denied
from invocations.callbacks.services import endpoint_of
from invocations.calls import Answered, Begun, Call, Refused, fingerprints_of
from invocations.endings import Ending, finish, principal_of_agent
from invocations.holding import cancel_call, hold, lacks_a_person, look_further, refuse_and_ask
from invocations.models import FOR_WORK, Invocation, State
from invocations.preflight import Preflight, run_preflight, wanted_of
from invocations.problems import IdempotencyInProgress, IdempotencyKeyReused, QueueUnavailable
from invocations.rejecting import count_rejected
from invocations.steps import StepLog
from invocations.waker import waker
from registry.callability import check_known
from registry.compiled import compiled_version
from registry.standing import load_standing
from toolhub.kernel.db import database_time, release_connection
from toolhub.kernel.faults import fault
from toolhub.kernel.ids import encode, new_id
from toolhub.kernel.log_context import note_for_log
from toolhub.kernel.problems import Conflict, Problem
from toolhub.kernel.rows import Reading

if TYPE_CHECKING:
    from invocations.waker import Waiter
    from registry.standing import Standing
    from toolhub.kernel.principal import Principal

REFUSED_AT = {"QUOTA": "quota", "POLICY": "consent"}  # the step of a problem that came up after them
CANCEL_WAIT_S = 2.0  # a run ends within 250 ms of being told to


def find_earlier(call: Call, fingerprints: dict[str, str], *, by: Principal) -> Invocation | None:
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


def in_progress(earlier: Invocation) -> IdempotencyInProgress:
    waits = "waits for a person" if earlier.state == State.HELD else "is still running"
    return IdempotencyInProgress(
        f"The first call with this Idempotency-Key {waits}.",
        remedy=f"Wait for the end of {earlier.wire_id}, then make the same call again: it is answered with that one's answer.",
        details={"first_call": earlier.wire_id},
    )


def standing_of(tool: str, *, by: Principal, now: datetime) -> Standing:
    """What decides about this caller and this tool; raises for a name that means nothing here."""
    standing = load_standing(tenant_id=by.tenant_id, agent_id=by.agent(), key_id=by.key_id, tool=tool, now=now)
    check_known(standing)
    return standing


def preflight_call(call: Call, *, by: Principal, everything: bool = False) -> tuple[Preflight, StepLog]:
    """Only the decision; nothing is written."""
    log = StepLog(datetime.now(UTC))
    standing = standing_of(call.tool, by=by, now=log.created_at)
    return run_preflight(call, standing, fingerprints_of(call, by), log=log, everything=everything), log


def begin_call(call: Call, *, by: Principal) -> Begun:
    """Decide on a call, write it down and ring for a worker. The one way in for every caller.

    Raises :class:`Refused` when the answer is no, and a plain problem when there is no tool of that name to call.
    """
    log = StepLog(datetime.now(UTC))
    standing = standing_of(call.tool, by=by, now=log.created_at)
    fingerprints = fingerprints_of(call, by)
    preflight: Preflight | None = None
    id = new_id()
    note_for_log(call_id=encode("inv", id))
    try:
        if call.scope:
            by.check(call.scope)
        earlier = find_earlier(call, fingerprints, by=by)
        if earlier is not None:
            return begin_replay(earlier, standing, call, by=by)
        endpoint_of(call, by=by)
        preflight = run_preflight(call, standing, fingerprints, log=log)
        if lacks_a_person(call, preflight):
            preflight, log = look_further(call, standing, fingerprints, log)
        held = call.envelope.on_consent == "hold" and isinstance(preflight.problem, ConsentRequired)
        if preflight.problem is not None and not held:
            raise preflight.problem
        if not held:
            check_rates(preflight.lines, take=True)
        fault("call.decided")
        try:
            write = hold if held else accept
            begun = Begun(write(call, preflight, fingerprints, by=by, log=log, id=id))
        except IntegrityError as lost:
            earlier = find_earlier(call, fingerprints, by=by)  # two calls raced with one key; the other has it
            if earlier is None and not call.envelope.idempotency_key:
                raise
            if earlier is None:
                raise Conflict(
                    "The first call with this Idempotency-Key was given up at this moment.", remedy="Call again."
                ) from lost
            return begin_replay(earlier, standing, call, by=by)
    except Problem as problem:
        if preflight is not None and not preflight.refused_at:  # taken by another call after the preflight
            preflight.refused_at = REFUSED_AT.get(problem.reason.partition(".")[0], "")
        try:
            check_refused_call(by.id, because=problem)
        except RateLimited as refusal:
            count_rejected(by=by, reason=refusal.reason)
            raise
        if preflight is not None and problem is preflight.problem and lacks_a_person(call, preflight):
            told, denied = refuse_and_ask(call, preflight, fingerprints, by=by, log=log)
            raise Refused(told, denied, preflight) from problem
        denied = record_denied(call, problem, fingerprints, by=by, standing=standing, preflight=preflight, log=log)
        raise Refused(problem, denied, preflight) from problem
    fault("accept.committed")
    if held:
        return begun
    assert preflight.version is not None
    later = call.respond_async or preflight.version.manifest.is_async  # the caller counts on fetching the answer
    if at_most_s := patience(call, later=later):
        begun.listen(at_most_s=at_most_s)
    if call.chain_step is None:  # of a chain's call the message is sent when the chain's turn is committed
        try:
            ring(begun.invocation, somebody_waits=not later)
            fault("ring.sent")
            begun.notices = notices_of_request(call, before=id, by=by)
        except BaseException:
            begun.close()
            raise
    return begun


OF_REQUEST = Reading(
    lambda agent, request, before: (
        Invocation.objects.filter(agent_id=agent, request_id=request, id__lt=before)
        .exclude(state=State.DENIED)
        .order_by("-id")[:1]
    ),
    agent=UUID,
    request=str,
    before=UUID,
)


def notices_of_request(call: Call, *, before: UUID, by: Principal) -> tuple[str, ...]:
    """Whoever thinks that a request_id makes a call once is told, since the tool has run again. Asked while a worker is at it.

    With an Idempotency-Key the caller has said what is to happen, and calls of one dispatch or chain share their request_id.
    """
    if call.envelope.idempotency_key or call.chain_step is not None:
        return ()
    earlier = OF_REQUEST.first(agent=by.agent(), request=call.envelope.request_id, before=before)
    if earlier is None:
        return ()
    return (
        f"This request_id was used before, by the call {earlier.wire_id}, and this is another call. A request_id only finds a call "
        "again; to have a call that is sent twice made once, send an Idempotency-Key.",
    )


def patience(call: Call, *, later: bool = False) -> float:
    """How long this caller is kept waiting, in seconds."""
    if call.wait_s is None:
        return 0.0 if later else settings.TOOLHUB_SYNC_WAIT_S
    return min(call.wait_s, settings.TOOLHUB_SYNC_WAIT_S)


def invoke(call: Call, *, by: Principal) -> Answered:
    """Make a call and wait for its end in this thread, as long as the caller may be kept waiting."""
    with closing(begin_call(call, by=by)) as begun:
        if begun.waiter is not None:
            wait_for_end(begun.invocation.pk, begun.waiter, at_most_s=begun.at_most_s)
        return last_look(begun)


def look(begun: Begun, *, last: bool) -> Answered | None:
    """What has become of the call; None while it goes on and its caller may be kept waiting: ``last`` says that it may not.

    That an earlier answer was read again is a fact of its own.
    """
    found = FOR_WORK.get(pk=begun.invocation.pk)
    if not found.is_final and sweeper.is_overdue(found, database_time()) and sweeper.close_one(found.pk):
        found.refresh_from_db()
    if not found.is_final and not last:
        fault("wait.looked")
        return None
    if begun.replay is not None and found.is_final:
        begun.replay(found)
    return Answered(found, replayed=begun.replay is not None, notices=begun.notices)


def last_look(begun: Begun) -> Answered:
    """What has become of the call by now."""
    found = look(begun, last=True)
    assert found is not None
    return found


def check_may_be_answered_again(earlier: Invocation, standing: Standing, call: Call) -> None:
    """What was taken back since the first call holds for its answer too: who lost the permission gets nothing."""
    assert earlier.version_id is not None
    version = compiled_version(earlier.version_id)
    check_granted(standing.grants, wanted_of(version, standing, call.arguments), now=standing.at)
    if (
        earlier.consent_id is not None
        and not Consent.objects.spent_or_valid(standing.at).filter(pk=earlier.consent_id).exists()
    ):
        raise ConsentRequired(
            "The consent of the first call was revoked or ran out since.", remedy="Ask for consent again."
        )


def begin_replay(earlier: Invocation, standing: Standing, call: Call, *, by: Principal) -> Begun:
    """Let an earlier call with the same key stand for this one. One that has not ended is waited for when the caller says so."""
    note_for_log(call_id=earlier.wire_id)
    if not earlier.is_final and (call.wait_s is None or earlier.state == State.HELD):
        raise in_progress(earlier)
    check_may_be_answered_again(earlier, standing, call)
    begun = Begun(earlier, replay=partial(record_replay, by=by))
    if not earlier.is_final:
        begun.listen(at_most_s=patience(call))
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


def ring(invocation: Invocation, *, somebody_waits: bool) -> None:
    """Send the message of an accepted call. When the broker does not answer and somebody waits, cancel the call rather than run it
    later unasked; a caller who fetches the answer later was promised one, and the call is rung for again.

    A broker may take a message and fail to say so: a call that a worker has claimed meanwhile is left to it.
    """
    if queue.ring(invocation) or not somebody_waits:
        return
    problem = QueueUnavailable(remedy="Try again in a few seconds. Nothing has run.")
    ending = Ending(state=State.CANCELLED, problem=problem, ran=False)
    finish(invocation, ending, actor=principal_of_agent(invocation), attempt=0)


def cancel_and_wait(*, invocation_id: UUID, by: Principal) -> Invocation:
    """Cancel a call and give a run the moment that its end takes."""
    with waker().listen(invocation_id) as waiter:
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
        if row.is_final or (sweeper.is_overdue(row, database_time()) and sweeper.close_one(invocation_id)):
            return
        release_connection()
        waiter.wait(left)
