"""Retries: the calls that run again after a crash, and how.

Those of tools that honour their key: each run of a call gives the tool the same key, so its effect takes place once. And those of
which the gate has seen that nothing left for the service that was to answer. Of any other nobody can know what a run that was cut
off has done, and nothing runs it again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from django.db import transaction
from django.db.models import Q

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.calls import CallAttempt
from evidence.models import Snapshot, SnapshotKind
from invocations.accept.begin_record import build_queued_fields
from invocations.models import LOST, Attempt, Invocation, State
from invocations.queue import outbox
from kernel.fault_injection import inject_fault
from kernel.observability.telemetry import read_trace_id
from kernel.principal import Principal

MAX_ATTEMPTS = 3


def derive_tool_key(invocation: Invocation) -> str:
    """What the tool is to know the call by: the same for every attempt, and for every call that its caller repeats with one key.
    Callers' own keys are theirs: two of them may use the same, and one may use it again for another call once it is free.
    """
    asked = invocation.idempotency_key
    whose = [str(invocation.agent_id), invocation.user_fingerprint, invocation.tool, invocation.arguments_fingerprint]
    whose.append(asked or invocation.wire_id)
    mark = evidence.compute_fingerprint("\0".join(whose).encode(), tenant_id=invocation.tenant_id)
    return "idk_" + mark.rpartition(":")[2][:40]


def may_run_again(invocation: Invocation, *, is_unsent: bool = False) -> bool:
    """``is_unsent``: the gate vouches that nothing of this run's request has left. Then a key is not needed."""
    may = invocation.keyed or is_unsent
    return may and invocation.attempt < MAX_ATTEMPTS and invocation.cancel_asked_at is None


@transaction.atomic
def requeue_call(invocation: Invocation, *, because: str, only: Q | None = None, status: str = LOST) -> bool:
    """Queue a call again whose run was cut off. False when somebody else has ended it, or has the call by now. ``status``: what became
    of the attempt."""
    now = datetime.now(UTC)
    wanted = Q(cancel_asked_at=None)  # its caller may have asked for its end since the row was read
    won = Invocation.objects.move(
        invocation.pk,
        to=State.QUEUED,
        attempt=invocation.attempt,
        only=wanted & only if only else wanted,
        lease_until=None,
        started_at=None,
        progress=None,
        **build_queued_fields(somebody_waits=False),  # who called is told where the answer will be, if it takes long
    )
    if not won:
        return False
    Attempt.objects.filter(invocation_id=invocation.pk, number=invocation.attempt, finished_at=None).update(
        finished_at=now, status=status
    )
    Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.LIVE).delete()
    evidence.record(
        kind=Kind.INVOCATION_RETRIED,
        subject=invocation.wire_id,
        actor=Principal.system("sweeper", tenant_id=invocation.tenant_id),
        invocation_id=invocation.pk,
        tool=invocation.tool,
        reason=because,
        trace_id=read_trace_id(invocation.trace),
        data=CallAttempt(attempt=invocation.attempt),
    )
    inject_fault("again.before_commit")
    transaction.on_commit(partial(inject_fault, "again.committed"))
    transaction.on_commit(partial(outbox.notify_workers, invocation))
    return True
