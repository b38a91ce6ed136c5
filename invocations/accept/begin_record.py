"""Begin record: how it is written down that a call was made.

The row, the sealed input and the Begin fact, in one transaction with what the call takes: the budget, the outbox row. A
refused call gets its End in the same transaction.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from access.budgets.chain_reservations import draw_from_chain
from access.budgets.ledger import explain_shortage, reserve_amounts, reserve_at_commit
from access.budgets.services import keep_manifest_limit
from access.consents.services import spend_consent
from access.models import ConsentMode
from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.call_begins import (
    AgentRunPlace,
    Begin,
    CalledTool,
    CallingConnection,
    ChainPlace,
    ConsentBinding,
    InputCommitment,
    PolicyReference,
    ProposedBy,
    ReservedBudget,
)
from evidence.models import SnapshotKind
from invocations.accept.value_shape import describe_value_shape
from invocations.decide.decision import name_step
from invocations.end.end_record import write_end
from invocations.end.endings import Ending
from invocations.model_calls.model_facts import describe_asked_model
from invocations.models import Attempt, Invocation, State, WorkClass
from invocations.run_profiles.services import keep_profile
from invocations.step_log import read_step_result
from invocations.value_keys import get_callers_key
from kernel.canonical import compute_digest
from kernel.database.connections import database_time, work_while_committing
from kernel.database.postgresql.expectations import UnmetExpectation
from kernel.database.rows import insert_row
from kernel.fault_injection import inject_fault
from kernel.ids import encode
from kernel.observability.log_context import read_log_request
from kernel.observability.telemetry import PROCESS, current_trace, read_trace_id

if TYPE_CHECKING:
    from uuid import UUID

    from access.budgets.lines import BudgetLine, Demand
    from access.consents.matcher import ConsentValue
    from evidence.models import SubjectKey
    from invocations.agent_runs.models import AgentRunStep
    from invocations.calls import CallRequest, IncomingCall
    from invocations.decide.decision import Acceptance, Hold, Refusal
    from invocations.decide.preflight import Preflight
    from invocations.proposals.proposal_links import ProposalLink
    from invocations.step_log import StepLog
    from kernel.principal import UsedConnection
    from registry.decision_context import DecisionContext
    from registry.decision_rows import InstalledTool
    from unitools.manifest import Manifest


SEED_BYTES = 16
LONG_MS = 60_000  # of a tool's time; what may take longer waits in a queue of its own


def build_begin_leaf(
    call: CallRequest,
    decision_context: DecisionContext,
    preflight: Preflight | None,
    said: InputCommitment,
    key: SubjectKey,
    *,
    user_fingerprint: str,
    callback_id: UUID | None,
    budget: ReservedBudget | None,
    connection: UsedConnection | None = None,
) -> Begin:
    """What the Begin fact binds. Names that a caller has chosen may say who somebody is: they are hashed with the key of whom
    the call is made for, so that they can be compared until that person is forgotten.
    """
    step, installed, grant = call.chain_step, decision_context.installed, preflight.grant if preflight else None
    consent = preflight.consent if preflight else None
    decided = preflight is not None and preflight.verdict is not None
    return Begin(
        origin=str(call.origin),
        dry_run=call.envelope.dry_run,
        request_id=fingerprint_under(key, call.envelope.request_id.encode()),
        on_behalf_of=call.envelope.actor.get("type", ""),
        input=said,
        user=fingerprint_under(key, user_fingerprint.encode()) if user_fingerprint else None,
        connection=describe_connection(connection) if connection is not None else None,
        chain=ChainPlace(id=encode("chn", step.chain_id), role=step.role, step=step.name, try_=step.tries)
        if step
        else None,
        agent_run=describe_run_place(call.run_step) if call.run_step is not None else None,
        caller_trace=call.envelope.trace or None,
        proposal=fingerprint_under(key, call.proposal.encode()) if call.proposal else None,
        proposed_by=describe_link(preflight.proposal) if preflight and preflight.proposal else None,
        tool=_describe_tool(call.tool, installed)
        if installed is not None and installed.version_id is not None
        else None,
        policy=PolicyReference(version=preflight.policy_label, hash=preflight.policy_hash) if preflight else None,
        profile=preflight.profile_hash if preflight else None,
        # The weakest that is enough; the End says which it was.
        level=preflight.profile.isolation if preflight and preflight.profile is not None else None,
        grant=(encode("grt", grant.id) if grant else "") if preflight else None,
        actors=grant.actors if grant and grant.actors else None,
        consent=(encode("cns", consent.id) if consent else "") if preflight else None,
        account=preflight.account.wire_id if preflight and preflight.account else None,
        consent_binds=compute_consent_binding(consent) if consent is not None else None,
        decision_input=preflight.decision_input if preflight and decided else None,
        decision=preflight.decision if preflight and decided else None,
        obligations=compute_digest(preflight.obligations) if preflight and preflight.obligations else None,
        refused_at=preflight.refused_at or None if preflight else None,
        budget=budget,
        model=describe_asked_model(preflight, own_tools=call.own_tools) if preflight else None,
        callback=encode("cbe", callback_id) if callback_id else None,
    )


def describe_connection(connection: UsedConnection) -> CallingConnection:
    return CallingConnection(id=encode("con", connection.id), client=connection.client, member=connection.member)


def describe_run_place(step: AgentRunStep) -> AgentRunPlace:
    return AgentRunPlace(id=encode("run", step.run_id), turn=step.turn, position=step.position, try_=step.tries)


def _describe_tool(name: str, installed: InstalledTool) -> CalledTool:
    return CalledTool(
        name=name,
        version=installed.version,
        manifest=installed.manifest_digest,
        build=installed.build_digest,
        installation=encode("ins", installed.id),
        config=installed.config_digest,
    )


def describe_link(link: ProposalLink) -> ProposedBy:
    return ProposedBy(invocation=encode("inv", link.invocation_id), model=link.model, proposal=link.hash)


def compute_consent_binding(consent: ConsentValue) -> ConsentBinding:
    """What a consent is good for, and the digest of all that it says. Empty texts bind to nothing."""
    said = {
        "mode": str(consent.mode),
        "versions": consent.versions,
        "user": consent.user_fingerprint,
        "arguments": consent.arguments_fingerprint,
        "policy": consent.policy_hash,
        "expires_at": consent.expires_at.isoformat() if consent.expires_at else "",
    }
    return ConsentBinding(mode=said["mode"], hash=compute_digest(said))


def build_reserved_budget(lines: list[BudgetLine], demand: Demand) -> ReservedBudget | None:
    """What an accepted call holds of which budgets, until its End says what it took."""
    held = {line.dimension: demand.of(line.dimension) for line in lines if demand.of(line.dimension)}
    if not held:
        return None
    return ReservedBudget(reserved=held, of=sorted(line.wire_id for line in lines if line.dimension in held))


def build_decided_fields(preflight: Preflight) -> dict[str, Any]:
    """The fields of the row that preflight decides, as far as it came; a held call that is queued gets them anew."""
    return {
        "grant_id": preflight.grant.id if preflight.grant else None,
        "account_id": preflight.account.pk if preflight.account else None,
        "actors": preflight.grant.actors if preflight.grant else [],
        "policy_version": preflight.policy_label,
        "policy_hash": preflight.policy_hash,
        "profile_hash": preflight.profile_hash,
        "limiters": preflight.limiters,
        "obligations": preflight.obligations,
        "budget": preflight.budget,
    }


def build_manifest_fields(manifest: Manifest, *, keyed: bool) -> dict[str, Any]:
    """What the queue has to know of the tool, and how long the call's key is kept, if it has one."""
    is_long = manifest.is_async or manifest.timeout_ms > LONG_MS
    keep = timedelta(seconds=manifest.idempotency_keep_s)
    return {
        "work_class": WorkClass.LONG if is_long else WorkClass.QUICK,
        "serial": bool(manifest.serial_key),
        "serial_key": manifest.serial_key,
        "keyed": manifest.idempotency == "keyed",
        "key_until": database_time() + keep if keyed else None,
    }


def build_admitted_fields(incoming: IncomingCall, decision: Acceptance | Hold) -> dict[str, Any]:
    """What only a call that may be made has: a refused one tells no callback of its end, and may be tried again with its key."""
    return {
        "callback_id": decision.callback_id,
        "idempotency_key": incoming.call.envelope.idempotency_key,
    }


OUTCOMES = {State.DENIED: "denied", State.HELD: "held", State.QUEUED: "accepted", State.RUNNING: "accepted"}


def write_begin(
    incoming: IncomingCall,
    *,
    state: State,
    preflight: Preflight | None,
    log: StepLog,
    reserved: ReservedBudget | None = None,
    **more: Any,
) -> Invocation:
    """The row, the sealed input and the Begin fact, in the transaction of the caller. ``more``: further fields of the row.

    ``reserved``: what the call holds of its budgets.
    """
    call, by, fingerprints = incoming.call, incoming.by, incoming.fingerprints
    installed, version = incoming.decision_context.installed, preflight.version if preflight else None
    key = incoming.key or get_callers_key(fingerprints["user_fingerprint"], at=log.created_at, by=by)
    if version is not None:
        more = build_manifest_fields(version.manifest, keyed=bool(call.envelope.idempotency_key)) | more
    keep_profile(preflight, tenant_id=by.tenant_id)
    invocation = Invocation(
        id=incoming.id,
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        key_id=by.key_id,
        connection_id=by.connection.id if by.connection else None,
        tool=call.tool,
        version_id=installed.version_id if installed else None,
        installation_id=installed.id if installed else None,
        origin=call.origin,
        state=state,
        dry_run=call.envelope.dry_run,
        chain_step=call.chain_step,
        run_step=call.run_step,
        proposed_by_id=preflight.proposal.invocation_id if preflight and preflight.proposal else None,
        request_id=call.envelope.request_id,
        consent_id=preflight.consent.id if preflight and preflight.consent else None,
        steps=log.steps,
        input_valid=read_step_result(log.steps, "preflight.input_schema"),
        trace=current_trace() | read_log_request(),
        values_key=key,
        created_at=log.created_at,
        **(build_decided_fields(preflight) if preflight else {}),
        **fingerprints,
        **more,
    )
    insert_row(invocation)
    value = {"arguments": call.arguments, "envelope": call.envelope.context(), "seed": os.urandom(SEED_BYTES).hex()}
    snapshot = evidence.seal_values(
        tenant_id=by.tenant_id, invocation_id=incoming.id, kind=SnapshotKind.INPUT, value=value, key=key
    )
    declared = version.manifest.input_schema.get("properties", {}) if version else ()
    shape = describe_value_shape(call.arguments, declared)
    said = InputCommitment(**snapshot.to_commitment().to_data(), shape=shape)
    evidence.record(
        kind=Kind.DRY_RUN_BEGAN if invocation.dry_run else Kind.INVOCATION_BEGAN,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=incoming.id,
        tool=call.tool,
        outcome=OUTCOMES[state],
        reason=invocation.reason,
        trace_id=read_trace_id(invocation.trace),
        at=log.created_at,
        data=build_begin_leaf(
            call,
            incoming.decision_context,
            preflight,
            said,
            key,
            user_fingerprint=fingerprints["user_fingerprint"],
            callback_id=invocation.callback_id,
            budget=reserved,
            connection=by.connection,
        ),
    )
    return invocation


@transaction.atomic
def record_denied(incoming: IncomingCall, refusal: Refusal) -> Invocation:
    """A refused call: Begin and End together, with the step and the reason. Nothing runs."""
    now = datetime.now(UTC)
    invocation = write_begin(
        incoming,
        state=State.DENIED,
        preflight=refusal.preflight,
        log=refusal.log,
        finished_at=now,
        reason=refusal.problem.reason,
    )
    write_end(invocation, Ending(state=State.DENIED, problem=refusal.problem), actor=incoming.by, at=now)
    return invocation


def build_queued_fields(*, somebody_waits: bool = True) -> dict[str, Any]:
    """The fields of a row that waits for a worker from now on. It waits longer when nobody holds a line open for its answer."""
    longest = settings.TOOLHUB_QUEUE_WAIT_S if somebody_waits else settings.TOOLHUB_ASYNC_QUEUE_WAIT_S
    now = database_time()
    return {"queue_deadline_at": now + timedelta(seconds=longest), "notified_at": now}


def build_model_run_fields(*, started_at: datetime) -> dict[str, Any]:
    """The fields of a row that runs from now on, in the process that took the call. Whatever its manifest says, nothing runs it again:
    the provider may have been paid.
    """
    lease_until = database_time() + timedelta(seconds=settings.TOOLHUB_LEASE_S)
    return {"attempt": 1, "started_at": started_at, "lease_until": lease_until, "keyed": False}


def accept_call(incoming: IncomingCall, acceptance: Acceptance) -> Invocation:
    """Row, Begin, pending row, a consent for once and the budgets, all or nothing. The budgets come last, with the commit: their
    rows are contended.
    """
    try:
        return _accept_call(incoming, acceptance)
    except UnmetExpectation as unmet:
        with name_step("quota"):
            explain_shortage(unmet, acceptance.preflight.demand, incoming.decision_context.at)
        raise


@transaction.atomic
def _accept_call(incoming: IncomingCall, acceptance: Acceptance) -> Invocation:
    call, by, preflight = incoming.call, incoming.by, acceptance.preflight
    assert preflight.version is not None
    manifest = preflight.version.manifest
    if manifest.is_model:
        state, fields = State.RUNNING, build_model_run_fields(started_at=(started_at := datetime.now(UTC)))
    else:
        state, fields = (
            State.QUEUED,
            build_queued_fields(somebody_waits=not (call.respond_async or manifest.is_async)),
        )
    invocation = write_begin(
        incoming,
        state=state,
        preflight=preflight,
        log=acceptance.log,
        reserved=build_reserved_budget(preflight.held_lines, preflight.demand),
        **build_admitted_fields(incoming, acceptance),
        **fields,
    )
    if manifest.is_model:
        insert_row(Attempt(invocation=invocation, number=1, worker=PROCESS, started_at=started_at))
    if preflight.consent is not None and preflight.consent.mode == ConsentMode.ONCE:
        with name_step("consent"):
            spend_consent(consent_id=preflight.consent.id, invocation_id=incoming.id, by=by)
    limit = manifest.max_concurrency
    lines = keep_manifest_limit(preflight.held_lines, tenant_id=by.tenant_id, tool=call.tool, limit=limit)
    incoming.earlier.ask_with_transaction(call, id=incoming.id, by=by)
    with name_step("quota"):
        reserve_call_budgets(
            call, invocation_id=incoming.id, lines=lines, demand=preflight.demand, now=incoming.decision_context.at
        )
    if incoming.while_committing is not None:
        work_while_committing(partial(incoming.while_committing, invocation, preflight))
    inject_fault("accept.before_commit")
    return invocation


def reserve_call_budgets(
    call: CallRequest,
    *,
    invocation_id: UUID,
    lines: list[BudgetLine],
    demand: Demand,
    now: datetime,
    at_once: bool = False,
) -> None:
    """Hold what the call may take; a step of a chain draws it from what the chain holds. ``at_once``: and not with the commit, where
    the call is one of several in a transaction, and ends by itself when there is no room.
    """
    if call.chain_step is None:
        reserve = reserve_amounts if at_once else reserve_at_commit
        reserve(invocation_id=invocation_id, lines=lines, demand=demand, now=now)
    else:
        draw_from_chain(
            chain_id=call.chain_step.chain_id, invocation_id=invocation_id, lines=lines, demand=demand, now=now
        )
