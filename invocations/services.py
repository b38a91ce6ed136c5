"""How is a call made, and what is answered?

:func:`invoke` is the one way in for every caller: idempotency, preflight, acceptance, and the wait for the end. What may
not run is written down all the same: each call of a known tool has one Begin and one End.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from access.consents import check_has_consent
from access.models import QuotaWindow
from access.problems import QuotaExceeded
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import SnapshotKind
from invocations import queue, sweeper
from invocations.endings import Ending, finish, principal_of_agent, write_end
from invocations.models import Invocation, Origin, State
from invocations.preflight import (
    Preflight,
    budget_of,
    check_has_grant,
    quota_exceeded,
    run_preflight,
    window_start,
)
from invocations.problems import IdempotencyInProgress, IdempotencyKeyReused, QueueUnavailable
from invocations.steps import StepLog
from invocations.summaries import shape_of
from invocations.waker import waker
from registry.selectors import get_tool
from toolhub.kernel.canonical import encoded
from toolhub.kernel.db import release_connection
from toolhub.kernel.ids import new_id
from toolhub.kernel.problems import Problem
from toolhub.kernel.telemetry import current_trace, trace_id_of

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import Grant
    from registry.models import ToolVersion
    from toolhub.kernel.envelopes import RequestEnvelope
    from toolhub.kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class Call:
    """What the caller wants: a tool by name, arguments, and the SPEC-1 envelope around them."""

    tool: str
    arguments: Any
    envelope: RequestEnvelope
    origin: Origin = Origin.API
    respond_async: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The row after the wait. It may still be running. ``replayed``: an earlier call with the same key was answered again."""

    invocation: Invocation
    replayed: bool = False


def _fingerprints(call: Call, by: Principal) -> dict[str, str]:
    envelope = call.envelope
    said = {"tool": call.tool, "arguments": call.arguments, "dry_run": envelope.dry_run}
    said |= {
        "locale": envelope.locale,
        "currency": envelope.currency,
        "timezone": envelope.timezone,
    }  # answers differ by them
    body = encoded(said)[1]
    user = envelope.user_id
    return {
        "arguments_fingerprint": evidence.fingerprint(body, tenant_id=by.tenant_id),
        "user_fingerprint": evidence.fingerprint(user.encode(), tenant_id=by.tenant_id) if user else "",
    }


def find_earlier(call: Call, fingerprints: dict[str, str], *, by: Principal) -> Invocation | None:
    """The call that has this idempotency key already, if it may be answered again; raises when it may not."""
    if not call.envelope.idempotency_key:
        return None
    earlier = (
        Invocation.objects.visible_to(by)
        .select_related("version__tool")
        .filter(
            tool=call.tool,
            idempotency_key=call.envelope.idempotency_key,
            user_fingerprint=fingerprints["user_fingerprint"],
        )
        .first()
    )
    if earlier is None:
        return None
    if earlier.arguments_fingerprint != fingerprints["arguments_fingerprint"]:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used before with other arguments.",
            remedy="Use a new key for a new call.",
            details={"first_call": earlier.wire_id},
        )
    if not earlier.is_final:
        raise IdempotencyInProgress(
            "The first call with this Idempotency-Key is still running.",
            remedy=f"Look at /api/v1/invocations/{earlier.wire_id}.",
            details={"first_call": earlier.wire_id},
        )
    return earlier


def begin_data(
    call: Call, preflight: Preflight | None, version: ToolVersion | None, said: dict[str, Any]
) -> dict[str, Any]:
    """What the Begin fact binds."""
    data: dict[str, Any] = {
        "origin": str(call.origin),
        "dry_run": call.envelope.dry_run,
        "request_id": call.envelope.request_id,
        "on_behalf_of": call.envelope.actor.get("type", ""),
        "input": said,
    }
    if version is not None:
        data["tool"] = {
            "name": call.tool,
            "version": version.version,
            "manifest": version.manifest_digest,
            "build": version.build_digest,
        }
    if preflight is not None:
        data["policy"] = {"version": preflight.policy.version, "hash": preflight.policy.hash}
        data["profile"] = preflight.profile_hash
        data["grant"] = preflight.grant.wire_id if preflight.grant else ""
        data["consent"] = preflight.consent.wire_id if preflight.consent else ""
        if preflight.refused_at:
            data["refused_at"] = preflight.refused_at
    return data


def _write_begin(
    call: Call,
    fingerprints: dict[str, str],
    *,
    by: Principal,
    state: State,
    version: ToolVersion | None,
    preflight: Preflight | None,
    log: StepLog,
    id: UUID,
    finished_at: datetime | None = None,
    reason: str = "",
) -> Invocation:
    """The row, the sealed input and the Begin fact, in the transaction of the caller."""
    accepted = state is State.QUEUED
    invocation = Invocation.objects.create(
        id=id,
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        tool=call.tool,
        version=version,
        origin=call.origin,
        state=state,
        dry_run=call.envelope.dry_run,
        request_id=call.envelope.request_id,
        idempotency_key=call.envelope.idempotency_key if accepted else "",  # a refused call may be tried again
        grant=preflight.grant if preflight else None,
        consent=preflight.consent if preflight else None,
        policy_version=preflight.policy.version if preflight else "",
        profile=preflight.profile.to_json() if preflight and preflight.profile else None,
        profile_hash=preflight.profile_hash if preflight else "",
        budget=preflight.budget if preflight else {},
        steps=log.steps,
        trace=current_trace(),
        created_at=log.created_at,
        queue_deadline_at=log.created_at + timedelta(seconds=settings.TOOLHUB_QUEUE_WAIT_S) if accepted else None,
        rung_at=log.created_at if accepted else None,
        finished_at=finished_at,
        reason=reason,
        **fingerprints,
    )
    value = {"arguments": call.arguments, "envelope": call.envelope.context()}
    snapshot = evidence.seal_values(tenant_id=by.tenant_id, invocation_id=id, kind=SnapshotKind.INPUT, value=value)
    said = {
        "commit": snapshot.commitment,
        "alg": snapshot.alg,
        "bytes": snapshot.size,
        "snapshot": snapshot.wire_id,
        "shape": shape_of(call.arguments, version.view.input_schema.get("properties", {}) if version else ()),
    }
    evidence.record(
        kind=Kind.INVOCATION_BEGAN,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=id,
        tool=call.tool,
        outcome="denied" if state is State.DENIED else "accepted",
        reason=reason,
        trace_id=trace_id_of(invocation.trace),
        at=log.created_at,
        data=begin_data(call, preflight, version, said),
    )
    return invocation


@transaction.atomic
def record_denied(
    call: Call,
    problem: Problem,
    fingerprints: dict[str, str],
    *,
    by: Principal,
    version: ToolVersion | None,
    preflight: Preflight | None,
    log: StepLog,
) -> Invocation:
    """A refused call: Begin and End together, with the step and the reason. Nothing runs."""
    now = datetime.now(UTC)
    invocation = _write_begin(
        call,
        fingerprints,
        by=by,
        state=State.DENIED,
        version=version,
        preflight=preflight,
        log=log,
        id=new_id(),
        finished_at=now,
        reason=problem.reason,
    )
    write_end(invocation, Ending(state=State.DENIED, problem=problem), actor=by, at=now)
    return invocation


def consume_quota(grant: Grant, now: datetime) -> None:
    """Count one call. Rows won decide, never a value read before, so the limit holds under any concurrency."""
    if grant.calls_limit is None:
        return
    starts_at = window_start(grant, now)
    QuotaWindow.objects.get_or_create(grant=grant, starts_at=starts_at)
    won = QuotaWindow.objects.filter(grant=grant, starts_at=starts_at, used__lt=grant.calls_limit).update(
        used=F("used") + 1
    )
    if not won:
        raise quota_exceeded(budget_of(grant, now), now)


def return_quota(invocation: Invocation) -> None:
    """Give back what a call has counted that never ran and was the hub's own failure."""
    grant = invocation.grant
    if grant is not None and grant.calls_limit is not None:
        window = QuotaWindow.objects.filter(
            grant=grant, starts_at=window_start(grant, invocation.created_at), used__gt=0
        )
        window.update(used=F("used") - 1)


@transaction.atomic
def accept(
    call: Call,
    preflight: Preflight,
    fingerprints: dict[str, str],
    *,
    by: Principal,
    log: StepLog,
    id: UUID,
) -> Invocation:
    """Row, Begin, pending row, outbox row and the quota, all or nothing. The quota comes last: its row is contended."""
    assert preflight.grant is not None
    invocation = _write_begin(
        call, fingerprints, by=by, state=State.QUEUED, version=preflight.version, preflight=preflight, log=log, id=id
    )
    queue.put_in_outbox(id)
    consume_quota(preflight.grant, log.created_at)
    return invocation


def preflight_call(call: Call, *, by: Principal) -> tuple[Preflight, StepLog]:
    """Only the decision; nothing is written."""
    tool = get_tool(call.tool, tenant_id=by.tenant_id)
    log = StepLog(datetime.now(UTC))
    return run_preflight(tool, call.arguments, by=by, dry_run=call.envelope.dry_run, now=log.created_at, log=log), log


class Refused(Exception):
    """Carries a refused call to the edge: the problem, and the row that witnesses it."""

    def __init__(self, problem: Problem, invocation: Invocation, preflight: Preflight | None = None) -> None:
        self.problem, self.invocation, self.preflight = problem, invocation, preflight
        super().__init__(problem.detail)


def invoke(call: Call, *, by: Principal) -> Answered:
    """Make a call and wait for its end, as long as the caller may be kept waiting.

    Raises :class:`Refused` when the answer is no, and a plain problem when there is no tool of that name to call.
    """
    by.agent()
    log = StepLog(datetime.now(UTC))
    tool = get_tool(call.tool, tenant_id=by.tenant_id)
    fingerprints = _fingerprints(call, by)
    preflight: Preflight | None = None
    id = new_id()
    with waker().listen(id) as wait:
        try:
            earlier = find_earlier(call, fingerprints, by=by)
            if earlier is not None:
                return replay(earlier, by=by)
            preflight = run_preflight(
                tool, call.arguments, by=by, dry_run=call.envelope.dry_run, now=log.created_at, log=log
            )
            if preflight.problem is not None:
                raise preflight.problem
            try:
                invocation = accept(call, preflight, fingerprints, by=by, log=log, id=id)
            except IntegrityError:
                earlier = find_earlier(call, fingerprints, by=by)  # two calls raced with one key; the other has it
                if earlier is None:
                    raise
                return replay(earlier, by=by)
        except Problem as problem:
            if preflight is not None and isinstance(problem, QuotaExceeded):
                preflight.refused_at = "quota"  # also when another call took the last one after the preflight
            version = preflight.version if preflight else tool.current
            denied = record_denied(call, problem, fingerprints, by=by, version=version, preflight=preflight, log=log)
            raise Refused(problem, denied, preflight) from problem
        ring(invocation)
        if not (call.respond_async or preflight.checked_version().view.is_async):
            wait_for_end(id, wait)
    return Answered(Invocation.objects.select_related("version__tool").get(pk=id))


def check_may_be_answered_again(earlier: Invocation, *, by: Principal) -> None:
    """What was taken back since the first call holds for its answer too: who lost the permission gets nothing."""
    check_has_grant(agent_id=by.agent(), agent_name=by.name, tool_id=earlier.tool, now=datetime.now(UTC))
    if earlier.consent_id is not None and earlier.version is not None:
        check_has_consent(agent_id=by.agent(), tool=earlier.tool, versions=f"^{earlier.version.view.major}")


@transaction.atomic
def replay(earlier: Invocation, *, by: Principal) -> Answered:
    """Answer a finished call again. That it was read again is a fact of its own."""
    check_may_be_answered_again(earlier, by=by)
    evidence.record(
        kind=Kind.INVOCATION_REPLAYED,
        subject=earlier.wire_id,
        actor=by,
        tool=earlier.tool,
        data={"state": earlier.state},
    )
    return Answered(earlier, replayed=True)


def ring(invocation: Invocation) -> None:
    """Send the message of an accepted call; when the broker does not answer, cancel the call rather than run it later unasked.

    A broker may take a message and fail to say so: a call that a worker has claimed meanwhile is left to it.
    """
    if queue.relay(invocation_id=invocation.pk):
        return
    problem = QueueUnavailable(remedy="Try again in a few seconds. Nothing has run.")
    ending = Ending(state=State.CANCELLED, problem=problem, ran=False)
    if finish(invocation, ending, actor=principal_of_agent(invocation), attempt=0):
        return_quota(invocation)


def wait_for_end(invocation_id: UUID, wait: Any) -> None:
    """Block until the call has ended, at most ``TOOLHUB_SYNC_WAIT_S``. No connection is held in between.

    When the call's time to be picked up or its lease has run out, the caller closes it itself, so that an answer does not
    depend on a sweeper being alive.
    """
    until = time.monotonic() + settings.TOOLHUB_SYNC_WAIT_S
    while (left := until - time.monotonic()) > 0:
        row = Invocation.objects.only("state", "lease_until", "queue_deadline_at", "attempt").get(pk=invocation_id)
        if row.is_final:
            return
        if sweeper.is_overdue(row, datetime.now(UTC)):
            sweeper.close_one(invocation_id)
            continue
        release_connection()
        wait(left)
