"""Held calls: how a call waits for a person, and what ends its waiting.

A held call has its Begin, its sealed input and a request for a consent that is bound to its arguments and to the policy, or for the
account of its person at a server elsewhere, or for both, all in one transaction. The decision, the account, the end of its time or the
agent's own word ends the waiting: it is queued as if it came now, with everything looked at again, or it gets its End.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.dispatch import receiver

from access.budgets.rate_limits import check_rates
from access.budgets.services import keep_manifest_limit
from access.consents.matcher import ConsentValue
from access.consents.services import spend_consent
from access.consents.signals import consent_decided
from access.models import Consent, ConsentMode, ConsentState, ServerAccount, ServerAccountState
from access.problems import ConsentDenied, ConsentExpired, ConsentRequired, ConsentVoid
from access.server_accounts.problems import AccountDeclined, AccountRequired
from access.server_accounts.signals import account_changed
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.call_begins import PolicyReference
from evidence.leaves.calls import HeldCall, ResumedCall
from evidence.models import Snapshot, SnapshotKind
from invocations.accept.begin_record import (
    build_admitted_fields,
    build_decided_fields,
    build_queued_fields,
    build_reserved_budget,
    reserve_call_budgets,
    write_begin,
)
from invocations.approvals.call_requests import find_missing, request_call_account, request_call_consent
from invocations.call_outcomes import build_state_filter
from invocations.calls import CallRequest
from invocations.decide.decision import name_step
from invocations.decide.preflight import run_preflight
from invocations.end.end_record import build_caller_principal, end_call
from invocations.end.endings import Ending
from invocations.models import Invocation, Origin, State
from invocations.queue import outbox
from invocations.run_profiles.services import keep_profile
from invocations.step_log import StepLog
from kernel.database.connections import database_time
from kernel.fault_injection import inject_fault
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import encode
from kernel.problems import Conflict, Problem
from registry.decision_context import load_decision_context

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from invocations.calls import IncomingCall
    from invocations.decide.decision import Hold
    from invocations.decide.preflight import Preflight
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext

WAIT_STEP = "consent.wait"
WAITABLE = (ConsentRequired, AccountRequired)  # somebody can see to it while the call waits


# Beginning to wait.


def needs_person(call: CallRequest, preflight: Preflight) -> bool:
    """Whether a person's word is missing, or their account, and the caller wants somebody to be asked for it."""
    return call.envelope.on_consent != "refuse" and isinstance(preflight.problem, WAITABLE)


def run_full_preflight(
    call: CallRequest, decision_context: DecisionContext, fingerprints: dict[str, str], log: StepLog
) -> tuple[Preflight, StepLog]:
    """The decision with every step of it: nobody is asked about a call that something else forbids.

    Its problem is then whatever else is in the way, and what a person is asked for when that is all.
    """
    log = StepLog(log.created_at)
    preflight = run_preflight(call, decision_context, fingerprints, log=log, everything=True)
    others = [step for step, problem in preflight.problems.items() if not isinstance(problem, WAITABLE)]
    if others:
        preflight.refused_at, preflight.problem = others[0], preflight.problems[others[0]]
    return preflight, log


@transaction.atomic
def hold_call(incoming: IncomingCall, hold: Hold) -> Invocation:
    """Row, sealed input, Begin and the requests for what is missing, all or nothing. No budget is taken while it waits."""
    until, preflight = database_time() + timedelta(seconds=settings.TOOLHUB_HOLD_S), hold.preflight
    consent: Consent | None = None
    with name_step("grant"):
        account = request_call_account(incoming, preflight)
    if account is not None:
        preflight = replace(preflight, account=account)
    if find_missing(preflight, ConsentRequired):
        with name_step("consent"):
            consent = request_call_consent(incoming, hold.preflight, until=until)
            if consent.state != ConsentState.REQUESTED or consent.expires_at is None:
                raise ConsentRequired(
                    "The same request was decided on at this moment.",
                    remedy="Call again.",
                    details={"consent": consent.wire_id, "state": consent.shown_state},
                )
        until = min(until, consent.expires_at)
        asked = ConsentValue(consent.pk, consent.mode, consent.versions, state=consent.state)
        preflight = replace(preflight, consent=asked)
    invocation = write_begin(
        incoming,
        state=State.HELD,
        preflight=preflight,
        log=hold.log,
        held_until=until,
        **build_admitted_fields(incoming, hold),
    )
    evidence.record(
        kind=Kind.INVOCATION_HELD,
        subject=invocation.wire_id,
        actor=incoming.by,
        invocation_id=incoming.id,
        tool=invocation.tool,
        data=HeldCall(
            consent=consent.wire_id if consent else "",
            account=account.wire_id if account else None,
            until=until.isoformat(),
        ),
    )
    return invocation


# Ending the wait.


def restore_call(invocation: Invocation) -> CallRequest:
    """The call as it was made: its sealed input around the row."""
    sealed = evidence.open_values(Snapshot.objects.get(invocation_id=invocation.pk, kind=SnapshotKind.INPUT))
    envelope = RequestEnvelope(
        **sealed["envelope"], dry_run=invocation.dry_run, idempotency_key=invocation.idempotency_key
    )
    return CallRequest(
        invocation.tool,
        sealed["arguments"],
        envelope,
        origin=Origin(invocation.origin),
        chain_step=invocation.chain_step,
        run_step=invocation.run_step,
    )


def log_wait(invocation: Invocation, note: str) -> StepLog:
    log = StepLog(invocation.created_at)
    since = max((step["end_ms"] for step in invocation.steps), default=0.0)
    log.add(WAIT_STEP, "person", since, log.now_ms(), note=note)
    return log


@receiver(consent_decided, sender=Consent)
def follow_decision(*, consent: Consent, by: Principal, **_: Any) -> None:
    """What was decided holds for every call that waits for it, in the transaction of the decision."""
    for invocation in _lock_held(consent_id=consent.pk):
        refusal = None if consent.state == ConsentState.APPROVED else build_decision_problem(consent)
        _go_on(invocation, consent, refusal, log_wait(invocation, consent.wire_id), by=by)


@receiver(account_changed, sender=ServerAccount)
def follow_account_change(
    *, account: ServerAccount, by: Principal, replaced: ServerAccount | None = None, **_: Any
) -> None:
    """A connected account lets every call go on that waits for it, and one that its person does not connect ends them; in the
    transaction of that. What has waited for the one that it has ``replaced`` waits for it. Consents are locked before calls, as by a
    decision."""
    accounts = [account.pk, *([replaced.pk] if replaced else [])]
    waiting = Invocation.objects.filter(build_state_filter(State.HELD), account_id__in=accounts)
    consents = {each for each in waiting.values_list("consent_id", flat=True) if each}
    locked = {each.pk: each for each in Consent.objects.select_for_update().filter(pk__in=consents).order_by("pk")}
    for invocation in _lock_held(account_id__in=accounts):
        if invocation.account_id != account.pk:
            invocation.account_id = account.pk
            invocation.save(update_fields=["account_id"])
        refusal = None
        if account.state == ServerAccountState.ENDED:
            refusal = AccountDeclined(details={"account": account.wire_id, "why": account.end_reason})
        consent = locked.get(invocation.consent_id) if invocation.consent_id else None
        _go_on(invocation, consent, refusal, log_wait(invocation, account.wire_id), by=by)


def _lock_held(**which: Any) -> QuerySet[Invocation]:
    rows = Invocation.objects.select_for_update(of=("self",)).select_related("version__tool")
    return rows.filter(build_state_filter(State.HELD), **which).order_by("id")


def _go_on(
    invocation: Invocation, consent: Consent | None, refusal: Problem | None, log: StepLog, *, by: Principal
) -> None:
    """Queue it, let it wait for the other thing that is missing, or end it."""
    try:
        if refusal is not None:
            raise refusal
        with transaction.atomic():
            _resume(invocation, consent, log, by=by)
    except Problem as problem:
        if _waits_on(invocation, consent, problem):
            return
        state = State.EXPIRED if isinstance(problem, ConsentExpired) else State.DENIED
        ending = Ending(state=state, problem=problem, ran=False, steps=log.steps)
        end_call(invocation, ending, actor=by, attempt=invocation.attempt, only=Q(state=State.HELD))


def _waits_on(invocation: Invocation, consent: Consent | None, problem: Problem) -> bool:
    """Whether what is in the way is the other thing that the call waits for, and somebody may still see to it."""
    if isinstance(problem, ConsentRequired):
        return consent is not None and consent.shown_state == ConsentState.REQUESTED
    if not isinstance(problem, AccountRequired) or invocation.account_id is None:
        return False
    return ServerAccount.objects.filter(pk=invocation.account_id).exclude(state=ServerAccountState.ENDED).exists()


def build_decision_problem(consent: Consent) -> Problem:
    details = {"consent": consent.wire_id, "reason": consent.decision_reason or None}
    if consent.state == ConsentState.DENIED:
        return ConsentDenied(f"A person has denied this call: {consent.decision_reason}", details=details)
    return build_expiry_problem(details)


def build_expiry_problem(details: dict[str, Any]) -> Problem:
    return ConsentExpired(
        "Nobody decided on this call while it could wait.", remedy="Call again to ask once more.", details=details
    )


def check_held_call_unchanged(invocation: Invocation, consent: Consent | None, preflight: Preflight) -> None:
    """A person has seen to this call by this version; who has agreed to one call, also under this policy."""
    asked = {"consent": consent.wire_id} if consent else {}
    installed = preflight.decision_context.installed
    now = installed.version if installed else ""
    assert invocation.version is not None
    if installed is not None and installed.version_id != invocation.version_id:
        raise ConsentVoid(
            f"The call was held for {invocation.tool} {invocation.version.version}; calls now get {now or 'none'}.",
            remedy="Call again; somebody is asked about the version that would run.",
            details=asked | {"held_for": invocation.version.version, "in_force": now},
        )
    if consent and consent.mode == ConsentMode.ONCE and preflight.policy_hash != invocation.policy_hash:
        raise ConsentVoid(
            "The policy has changed since somebody was asked about this call.",
            remedy="Call again; somebody is asked under the policy that is in force.",
            details=asked | {"held_under": invocation.policy_version, "in_force": preflight.policy_label},
        )


def _resume(invocation: Invocation, consent: Consent | None, log: StepLog, *, by: Principal) -> None:
    """Queue a held call as if it came now: everything is looked at again, and its budgets are taken."""
    call, agent = restore_call(invocation), build_caller_principal(invocation)
    fingerprints = {
        "arguments_fingerprint": invocation.arguments_fingerprint,
        "user_fingerprint": invocation.user_fingerprint,
    }
    decision_context = load_decision_context(
        tenant_id=invocation.tenant_id,
        agent_id=invocation.agent_id,
        connection_id=invocation.connection_id,
        tool=invocation.tool,
    )
    preflight = run_preflight(call, decision_context, fingerprints, log=log)
    check_held_call_unchanged(invocation, consent, preflight)
    is_agreed = consent is not None and consent.state != ConsentState.REQUESTED
    once = consent if consent is not None and is_agreed and consent.mode == ConsentMode.ONCE else None
    if once is not None and once.pk not in {each.id for each in decision_context.consents}:
        raise ConsentVoid(
            "The consent was for one call, and another that waited with the same arguments has used it.",
            remedy="Call again if it is really to be done twice.",
            details={"consent": once.wire_id},
        )
    if preflight.problem is not None:
        raise preflight.problem
    assert preflight.version is not None
    assert preflight.profile is not None
    assert preflight.grant is not None
    found = preflight.consent if consent is None else None  # that came about while the call waited for something else
    consent_id = consent.pk if consent else found.id if found else None
    spends = once is not None or (found is not None and found.mode == ConsentMode.ONCE)
    check_rates(preflight.lines, take=True)
    keep_profile(preflight, tenant_id=invocation.tenant_id)
    won = Invocation.objects.move(
        invocation.pk,
        to=State.QUEUED,
        attempt=invocation.attempt,
        only=Q(state=State.HELD),
        held_until=None,
        consent_id=consent_id,
        steps=[*invocation.steps, *log.steps],
        **build_decided_fields(preflight),
        **build_queued_fields(somebody_waits=False),
    )
    if not won:
        raise Conflict("The call does not wait any more.")
    evidence.record(
        kind=Kind.INVOCATION_RESUMED,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=invocation.pk,
        tool=invocation.tool,
        data=ResumedCall(
            consent=encode("cns", consent_id) if consent_id else "",
            account=preflight.account.wire_id if preflight.account else None,
            grant=encode("grt", preflight.grant.id),
            actors=preflight.grant.actors,
            policy=PolicyReference(version=preflight.policy_label, hash=preflight.policy_hash),
            profile=preflight.profile_hash,
            level=preflight.profile.isolation,
            decision_input=preflight.decision_input,
            decision=preflight.decision,
            budget=build_reserved_budget(preflight.lines, preflight.demand),
        ),
    )
    transaction.on_commit(partial(inject_fault, "resume.committed"))
    transaction.on_commit(partial(outbox.notify_workers, invocation))
    if spends and consent_id is not None:
        spend_consent(consent_id=consent_id, invocation_id=invocation.pk, by=agent)
    limit = preflight.version.manifest.max_concurrency
    lines = keep_manifest_limit(preflight.lines, tenant_id=invocation.tenant_id, tool=invocation.tool, limit=limit)
    reserve_call_budgets(
        call,
        invocation_id=invocation.pk,
        lines=lines,
        demand=preflight.demand,
        now=decision_context.at,
        at_once=True,
    )
    inject_fault("resume.before_commit")
