"""How is it written down that a call was made?

The row, the sealed input and the Begin fact, in one transaction with what the call takes: the budget, the outbox row. A
refused call gets its End in the same transaction.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from access.budgets.ahead import draw
from access.budgets.ledger import reserve
from access.budgets.services import keep_manifest_limit
from access.consents import spend_consent
from access.models import ConsentMode
from evidence import services as evidence
from evidence.keys import fingerprint_under, key_of, subject_of
from evidence.kinds import Kind
from evidence.models import SnapshotKind
from invocations.callbacks.services import endpoint_of
from invocations.endings import Ending, write_end
from invocations.models import Invocation, State, WorkClass
from invocations.steps import found_by
from invocations.summaries import shape_of
from toolhub.kernel.canonical import digest
from toolhub.kernel.db import database_time
from toolhub.kernel.faults import fault
from toolhub.kernel.ids import encode, new_id
from toolhub.kernel.rows import insert
from toolhub.kernel.telemetry import current_trace, trace_id_of

if TYPE_CHECKING:
    from uuid import UUID

    from access.budgets.lines import Demand, Line
    from access.fitting import ConsentValue
    from evidence.models import SubjectKey
    from invocations.calls import Call
    from invocations.preflight import Preflight
    from invocations.steps import StepLog
    from registry.standing import Standing
    from toolhub.kernel.principal import Principal
    from toolhub.kernel.problems import Problem


SEED_BYTES = 16
LONG_MS = 60_000  # of a tool's time; what may take longer waits in a queue of its own


def begin_data(
    call: Call, standing: Standing, preflight: Preflight | None, said: dict[str, Any], key: SubjectKey
) -> dict[str, Any]:
    """What the Begin fact binds. Names that a caller has chosen may say who somebody is: they are hashed with the key of whom
    the call is made for, so that they can be compared until that person is forgotten.
    """
    data: dict[str, Any] = {
        "origin": str(call.origin),
        "dry_run": call.envelope.dry_run,
        "request_id": fingerprint_under(key, call.envelope.request_id.encode()),
        "on_behalf_of": call.envelope.actor.get("type", ""),
        "input": said,
    }
    if (step := call.chain_step) is not None:
        data["chain"] = {"id": encode("chn", step.chain_id), "role": step.role, "step": step.name, "try": step.tries}
    if call.envelope.trace:
        data["caller_trace"] = call.envelope.trace
    if call.proposal:
        data["proposal"] = fingerprint_under(key, call.proposal.encode())
    installed = standing.installed
    if installed is not None and installed.version_id is not None:
        data["tool"] = {
            "name": call.tool,
            "version": installed.version,
            "manifest": installed.manifest_digest,
            "build": installed.build_digest,
            "installation": encode("ins", installed.id),
            "config": installed.config_digest,
        }
    if preflight is not None:
        data["policy"] = {"version": preflight.policy_label, "hash": preflight.policy_hash}
        data["profile"] = preflight.profile_hash
        if preflight.profile is not None:
            data["level"] = preflight.profile.isolation  # the weakest that is enough; the End says which it was
        data["grant"] = encode("grt", preflight.grant.id) if preflight.grant else ""
        if preflight.grant and preflight.grant.actors:
            data["actors"] = preflight.grant.actors
        data["consent"] = encode("cns", preflight.consent.id) if preflight.consent else ""
        if preflight.consent is not None:
            data["consent_binds"] = binding_of(preflight.consent)
        if preflight.verdict is not None:
            data["decision_input"], data["decision"] = preflight.decision_input, preflight.decision
        if preflight.obligations:
            data["obligations"] = digest(preflight.obligations)
        if preflight.refused_at:
            data["refused_at"] = preflight.refused_at
    return data


def binding_of(consent: ConsentValue) -> dict[str, str]:
    """What a consent is good for, and the digest of all that it says. Empty texts bind to nothing."""
    said = {
        "mode": str(consent.mode),
        "versions": consent.versions,
        "user": consent.user_fingerprint,
        "arguments": consent.arguments_fingerprint,
        "policy": consent.policy_hash,
        "expires_at": consent.expires_at.isoformat() if consent.expires_at else "",
    }
    return {"mode": said["mode"], "hash": digest(said)}


def reserved_data(lines: list[Line], demand: Demand) -> dict[str, Any]:
    """What an accepted call holds of which budgets, until its End says what it took."""
    held = {line.dimension: demand.of(line.dimension) for line in lines if demand.of(line.dimension)}
    if not held:
        return {}
    return {"budget": {"reserved": held, "of": sorted(line.wire_id for line in lines if line.dimension in held)}}


def _user_data(key: SubjectKey, fingerprint: str) -> dict[str, str]:
    """Whom the call was made for, by a hash that can be compared until that person is forgotten."""
    return {"user": fingerprint_under(key, fingerprint.encode())} if fingerprint else {}


def _by_manifest(call: Call, preflight: Preflight | None) -> dict[str, Any]:
    """What the queue has to know of the tool."""
    if preflight is None or preflight.version is None:
        return {}
    manifest = preflight.version.manifest
    is_long = manifest.is_async or manifest.timeout_ms > LONG_MS
    keep = timedelta(seconds=manifest.idempotency_keep_s)
    return {
        "work_class": WorkClass.LONG if is_long else WorkClass.QUICK,
        "serial": manifest.is_serial,
        "keyed": manifest.idempotency == "keyed",
        "key_until": database_time() + keep if call.envelope.idempotency_key else None,
    }


OUTCOMES = {State.DENIED: "denied", State.HELD: "held", State.QUEUED: "accepted"}


def write_begin(
    call: Call,
    fingerprints: dict[str, str],
    *,
    by: Principal,
    state: State,
    standing: Standing,
    preflight: Preflight | None,
    log: StepLog,
    id: UUID,
    **more: Any,
) -> Invocation:
    """The row, the sealed input and the Begin fact, in the transaction of the caller. ``more``: further fields of the row."""
    installed = standing.installed
    whose = subject_of(fingerprints["user_fingerprint"], agent_id=by.agent(), at=log.created_at)
    key = key_of(tenant_id=by.tenant_id, subject=whose)
    invocation = Invocation(
        id=id,
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        key_id=by.key_id,
        tool=call.tool,
        version_id=installed.version_id if installed else None,
        installation_id=installed.id if installed else None,
        origin=call.origin,
        state=state,
        dry_run=call.envelope.dry_run,
        chain_step=call.chain_step,
        callback_id=None if state is State.DENIED else endpoint_of(call, by=by),
        request_id=call.envelope.request_id,
        # A refused call may be tried again with its key.
        idempotency_key="" if state is State.DENIED else call.envelope.idempotency_key,
        grant_id=preflight.grant.id if preflight and preflight.grant else None,
        actors=preflight.grant.actors if preflight and preflight.grant else [],
        **_by_manifest(call, preflight),
        consent_id=preflight.consent.id if preflight and preflight.consent else None,
        policy_version=preflight.policy_label if preflight else "",
        policy_hash=preflight.policy_hash if preflight else "",
        profile=preflight.profile.to_json() if preflight and preflight.profile else None,
        profile_hash=preflight.profile_hash if preflight else "",
        limiters=preflight.limiters if preflight else {},
        obligations=preflight.obligations if preflight else [],
        budget=preflight.budget if preflight else [],
        steps=log.steps,
        input_valid=found_by(log.steps, "preflight.input_schema"),
        trace=current_trace(),
        values_key=key,
        created_at=log.created_at,
        **fingerprints,
        **more,
    )
    insert(invocation)
    value = {"arguments": call.arguments, "envelope": call.envelope.context(), "seed": os.urandom(SEED_BYTES).hex()}
    snapshot = evidence.seal_values(
        tenant_id=by.tenant_id, invocation_id=id, kind=SnapshotKind.INPUT, value=value, key=key
    )
    version = preflight.version if preflight else None
    said = {
        "commit": snapshot.commitment,
        "alg": snapshot.alg,
        "bytes": snapshot.size,
        "snapshot": snapshot.wire_id,
        "shape": shape_of(call.arguments, version.manifest.input_schema.get("properties", {}) if version else ()),
    }
    evidence.record(
        kind=Kind.DRY_RUN_BEGAN if invocation.dry_run else Kind.INVOCATION_BEGAN,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=id,
        tool=call.tool,
        outcome=OUTCOMES[state],
        reason=invocation.reason,
        trace_id=trace_id_of(invocation.trace),
        at=log.created_at,
        data=begin_data(call, standing, preflight, said, key)
        | _user_data(key, fingerprints["user_fingerprint"])
        | (reserved_data(preflight.lines, preflight.demand) if preflight and state is State.QUEUED else {})
        | ({"callback": encode("cbe", invocation.callback_id)} if invocation.callback_id else {}),
    )
    return invocation


@transaction.atomic
def record_denied(
    call: Call,
    problem: Problem,
    fingerprints: dict[str, str],
    *,
    by: Principal,
    standing: Standing,
    preflight: Preflight | None,
    log: StepLog,
    id: UUID | None = None,
) -> Invocation:
    """A refused call: Begin and End together, with the step and the reason. Nothing runs."""
    now = datetime.now(UTC)
    invocation = write_begin(
        call,
        fingerprints,
        by=by,
        state=State.DENIED,
        standing=standing,
        preflight=preflight,
        log=log,
        id=id or new_id(),
        finished_at=now,
        reason=problem.reason,
    )
    write_end(invocation, Ending(state=State.DENIED, problem=problem), actor=by, at=now)
    return invocation


def queued_now(*, somebody_waits: bool = True) -> dict[str, Any]:
    """The fields of a row that waits for a worker from now on. It waits longer when nobody holds a line open for its answer."""
    longest = settings.TOOLHUB_QUEUE_WAIT_S if somebody_waits else settings.TOOLHUB_ASYNC_QUEUE_WAIT_S
    now = database_time()
    return {"queue_deadline_at": now + timedelta(seconds=longest), "rung_at": now}


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
    """Row, Begin, pending row, a consent for once and the budgets, all or nothing. The budgets come last: their rows are
    contended.
    """
    assert preflight.version is not None
    manifest = preflight.version.manifest
    invocation = write_begin(
        call,
        fingerprints,
        by=by,
        state=State.QUEUED,
        standing=preflight.standing,
        preflight=preflight,
        log=log,
        id=id,
        **queued_now(somebody_waits=not (call.respond_async or manifest.is_async)),
    )
    if preflight.consent is not None and preflight.consent.mode == ConsentMode.ONCE:
        spend_consent(consent_id=preflight.consent.id, invocation_id=id, by=by)
    limit = manifest.max_concurrency
    lines = keep_manifest_limit(preflight.lines, tenant_id=by.tenant_id, tool=call.tool, limit=limit)
    reserve_for(call, invocation_id=id, lines=lines, demand=preflight.demand, now=log.created_at)
    fault("accept.before_commit")
    return invocation


def reserve_for(call: Call, *, invocation_id: UUID, lines: list[Line], demand: Demand, now: datetime) -> None:
    """Hold what the call may take; a step of a chain draws it from what the chain holds."""
    if call.chain_step is None:
        reserve(invocation_id=invocation_id, lines=lines, demand=demand, now=now)
    else:
        draw(chain_id=call.chain_step.chain_id, invocation_id=invocation_id, lines=lines, demand=demand, now=now)
