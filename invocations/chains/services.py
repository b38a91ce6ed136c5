"""Chains: how one is accepted, cancelled and ended.

:func:`submit_chain` looks at the whole plan first and then writes down the chain, its steps, the sealed plan and the fact that it
began, and reserves the budgets of all its calls, in one transaction. How it goes on from there:
:mod:`invocations.chains.orchestration`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import IntegrityError, transaction

from access.budgets import ledger
from access.budgets.chain_reservations import reserve_for_chain
from access.server_accounts.problems import AccountOfAnother
from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.chains import CancelledChain, ChainBegin, ChainEnd, RefusedChain
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import ValuesErased
from invocations.accept.recorded_refusals import RecordedRefusal
from invocations.accept.repeated_submissions import find_first_submission
from invocations.answer.wake_ups import get_waker
from invocations.calls import name_person
from invocations.chains.models import CHAIN_TRANSITIONS, Chain, ChainState, ChainStep, StepRole, StepState
from invocations.chains.plan import ChainPlan, read_plan
from invocations.chains.preflight import PlanExamination, examine_plan
from invocations.kept_callers import build_kept_caller, describe_credential
from invocations.models import FINAL, Invocation
from invocations.problems import IdempotencyKeyReused
from invocations.request_tallies import check_is_recorded
from invocations.run.cancellation import cancel_call
from invocations.value_keys import get_callers_key
from kernel.canonical import encode_hash_input
from kernel.database.connections import database_time
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import encode, new_id
from kernel.observability.telemetry import current_trace, read_trace_id
from kernel.problems import Conflict, Problem

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal


class Submission(NamedTuple):
    """``replayed``: the same plan was accepted before, with the same key."""

    chain: Chain
    replayed: bool = False


def _fingerprints(plan: ChainPlan, envelope: RequestEnvelope, *, by: Principal) -> dict[str, str]:
    said = {
        "plan": plan.document,
        "currency": envelope.currency,
        "dry_run": envelope.dry_run,
        "locale": envelope.locale,
        "timezone": envelope.timezone,
    }
    return {
        "plan_fingerprint": evidence.compute_fingerprint(encode_hash_input(said)[1], tenant_id=by.tenant_id),
        "user_fingerprint": evidence.compute_user_fingerprint(envelope.user_id, tenant_id=by.tenant_id),
    }


def _find_earlier(envelope: RequestEnvelope, fingerprints: dict[str, str], *, by: Principal) -> Chain | None:
    return find_first_submission(
        Chain.objects.all(),
        Chain.objects.visible_to(by),
        envelope,
        fingerprints,
        build_reused=lambda first: IdempotencyKeyReused(
            "This Idempotency-Key was used before with another plan.",
            remedy="Use a new key for a new plan.",
            details={"first_chain": first.wire_id},
        ),
        hidden=AccountOfAnother("The first chain with this Idempotency-Key has calls by another's account."),
        by=by,
    )


def submit_chain(plan: ChainPlan, envelope: RequestEnvelope, *, by: Principal) -> Submission:
    """Accept a plan as a whole, or raise :class:`RecordedRefusal` with what is in the way. Nothing has run when this returns."""
    envelope = name_person(envelope, by=by)
    fingerprints = _fingerprints(plan, envelope, by=by)
    earlier = _find_earlier(envelope, fingerprints, by=by)
    if earlier is not None:
        return Submission(earlier, replayed=True)
    examination = examine_plan(plan, envelope, by=by)
    try:
        if examination.problem is not None:
            raise examination.problem
        return Submission(_accept(plan, envelope, fingerprints, examination, by=by))
    except IntegrityError:
        earlier = _find_earlier(envelope, fingerprints, by=by)  # two raced with one key; the other has it
        if earlier is None:
            raise
        return Submission(earlier, replayed=True)
    except Problem as problem:
        check_is_recorded(problem, by=by)
        _record_refused(envelope, fingerprints, problem, examination, by=by)
        raise RecordedRefusal(problem) from problem


@transaction.atomic
def _record_refused(
    envelope: RequestEnvelope,
    fingerprints: dict[str, str],
    problem: Problem,
    examination: PlanExamination,
    *,
    by: Principal,
) -> None:
    key = get_callers_key(fingerprints["user_fingerprint"], at=datetime.now(UTC), by=by)
    evidence.record(
        kind=Kind.CHAIN_REFUSED,
        subject=encode("chn", new_id()),
        actor=by,
        outcome="denied",
        reason=problem.reason,
        data=RefusedChain(
            request_id=fingerprint_under(key, envelope.request_id.encode()),
            at=examination.at,
            tools=[each.planned.tool for each in examination.calls],
        ),
    )


@transaction.atomic
def _accept(
    plan: ChainPlan,
    envelope: RequestEnvelope,
    fingerprints: dict[str, str],
    examination: PlanExamination,
    *,
    by: Principal,
) -> Chain:
    """Row, steps, sealed plan, fact and the budgets of all calls, all or nothing. The budgets come last, as for a call."""
    now = datetime.now(UTC)
    key = get_callers_key(fingerprints["user_fingerprint"], at=now, by=by)
    chain = Chain.objects.create(
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        credential=describe_credential(by),
        dry_run=envelope.dry_run,
        request_id=envelope.request_id,
        idempotency_key=envelope.idempotency_key,
        trace=current_trace(),
        values_key=key,
        created_at=now,
        **fingerprints,
    )
    ChainStep.objects.bulk_create(
        ChainStep(
            chain=chain,
            role=each.role,
            position=each.position,
            name=each.name,
            tool=each.tool,
            retries=each.retries,
        )
        for each in plan.calls
    )
    said = {"on_consent": envelope.on_consent, "purpose": envelope.purpose, "dry_run": envelope.dry_run}
    snapshot = evidence.seal_values(
        tenant_id=by.tenant_id,
        invocation_id=chain.pk,
        kind=SnapshotKind.INPUT,
        value={"plan": plan.document, "envelope": envelope.context() | said},
        key=key,
    )
    evidence.record(
        kind=Kind.CHAIN_BEGAN,
        subject=chain.wire_id,
        actor=by,
        outcome="accepted",
        trace_id=read_trace_id(chain.trace),
        at=now,
        data=ChainBegin(
            request_id=fingerprint_under(key, envelope.request_id.encode()),
            on_behalf_of=envelope.actor.get("type", ""),
            dry_run=envelope.dry_run,
            plan=snapshot.to_commitment(),
            steps=[{"step": each.name, "tool": each.tool} for each in plan.steps],
            compensations=[{"step": each.name, "tool": each.tool} for each in plan.compensations],
        ),
    )
    reserve_for_chain(chain_id=chain.pk, shares=examination.shares, now=database_time())
    return chain


# What was accepted, read again.


def open_plan(chain: Chain) -> tuple[RequestEnvelope, ChainPlan]:
    """As they were sent; only the hub itself looks, to make the next call."""
    snapshot = Snapshot.objects.filter(invocation_id=chain.pk, kind=SnapshotKind.INPUT).first()
    if snapshot is None:
        raise ValuesErased()
    sealed = evidence.open_values(snapshot)
    return RequestEnvelope(**sealed["envelope"]), read_plan(sealed["plan"])


def build_chain_principal(chain: Chain) -> Principal:
    """The agent that submitted the plan, with the credential that it had then."""
    return build_kept_caller(chain.agent, chain.credential)


def find_open_call(chain: Chain) -> Invocation | None:
    """The call of the chain that has not ended; there is one at most."""
    return Invocation.objects.filter(chain_step__chain=chain).exclude(state__in=FINAL).first()


# Ending.


def check_can_cancel(chain: Chain) -> None:
    if chain.state != ChainState.RUNNING or chain.cancel_asked_at is not None:
        told = "is being ended already" if not chain.is_final else f"is {chain.state}"
        raise Conflict(f"This chain {told}; only one that goes on can be cancelled.", details={"state": chain.state})


@transaction.atomic
def cancel_chain(*, chain_id: UUID, by: Principal) -> Chain:
    """Make no more of its calls, and end the one that runs. What was done is undone where the plan says how."""
    rows = Chain.objects.visible_to(by).select_for_update(of=("self",))
    chain = rows.select_related("agent").get(pk=chain_id)
    check_can_cancel(chain)
    chain.cancel_asked_at = datetime.now(UTC)
    chain.save(update_fields=["cancel_asked_at"])
    evidence.record(
        kind=Kind.CHAIN_CANCEL_ASKED, subject=chain.wire_id, actor=by, data=CancelledChain(state=chain.state)
    )
    call = find_open_call(chain)
    if call is not None:
        try:
            with transaction.atomic():
                cancel_call(invocation_id=call.pk, by=by)
        except Conflict:
            pass  # it has ended at this moment; the chain goes no further all the same
    return chain


def end_chain(chain: Chain, steps: list[ChainStep], *, to: ChainState, by: Principal) -> None:
    """The final state, the fact and what is left of the budgets, in the transaction of the caller, who has locked the row."""
    assert to in CHAIN_TRANSITIONS[chain.state]
    now = datetime.now(UTC)
    failed = next((step for step in steps if step.state == StepState.FAILED and not step.is_compensation), None)
    reason = failed.reason if failed else "REQUEST.CANCELLED"
    chain.state, chain.finished_at = to, now
    chain.reason = "" if to == ChainState.SUCCEEDED else reason
    chain.save(update_fields=["state", "finished_at", "reason"])
    ChainStep.objects.filter(chain=chain, state=StepState.WAITING).update(state=StepState.SKIPPED)
    evidence.record(
        kind=Kind.CHAIN_ENDED,
        subject=chain.wire_id,
        actor=by,
        outcome=str(to),
        reason=chain.reason,
        trace_id=read_trace_id(chain.trace),
        at=now,
        data=ChainEnd(
            state=str(to),
            steps=_outcomes(steps, StepRole.STEP),
            compensations=_outcomes(steps, StepRole.COMPENSATION),
        ),
    )
    ledger.release_reservations(invocation_id=chain.pk)
    transaction.on_commit(partial(get_waker().wake, chain.pk))


def _outcomes(steps: list[ChainStep], role: StepRole) -> list[dict[str, Any]]:
    """What became of each step, and of the last call that was made for it."""
    last = {
        row.chain_step_id: row.wire_id
        for row in Invocation.objects.filter(chain_step__in=steps).only("chain_step_id").order_by("id")
    }
    return [
        {
            "step": step.name,
            "state": str(StepState.SKIPPED if step.state == StepState.WAITING else step.state),
            "tries": step.tries,
            "reason": step.reason,
            "call": last.get(step.pk, ""),
        }
        for step in steps
        if step.role == role
    ]
