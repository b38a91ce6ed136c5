"""How is it written down that a call was made?

The row, the sealed input and the Begin fact, in one transaction with what the call takes: the budget, the outbox row. A
refused call gets its End in the same transaction.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from access.budgets.ledger import reserve
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import SnapshotKind
from invocations import queue
from invocations.endings import Ending, write_end
from invocations.models import Invocation, State
from invocations.summaries import shape_of
from toolhub.kernel.ids import new_id
from toolhub.kernel.telemetry import current_trace, trace_id_of

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.calls import Call
    from invocations.preflight import Preflight
    from invocations.steps import StepLog
    from registry.models import ToolVersion
    from toolhub.kernel.principal import Principal
    from toolhub.kernel.problems import Problem


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


def write_begin(
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
        budget=preflight.budget if preflight else [],
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
    invocation = write_begin(
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
    """Row, Begin, pending row, outbox row and the budgets, all or nothing. The budgets come last: their rows are contended."""
    assert preflight.grant is not None
    invocation = write_begin(
        call, fingerprints, by=by, state=State.QUEUED, version=preflight.version, preflight=preflight, log=log, id=id
    )
    queue.put_in_outbox(id)
    reserve(invocation_id=id, lines=preflight.lines, demand=preflight.demand, now=log.created_at)
    return invocation
