"""Consents: how a person's permission comes about, and how it ends.

Which consent fits a call is a question of its own: :mod:`access.consents.matcher`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction

from access.consents.signals import consent_approving, consent_decided
from access.models import Consent, ConsentMode, ConsentState
from access.notifications.services import notify_channels
from access.problems import ConsentRequired, ConsentTooWide, FailureNotSeen, SelfApproval
from access.separation_of_duties import controls_agent, list_controlled_agents
from evidence import services as evidence
from evidence.erasures.holders import ERASED
from evidence.kinds import Kind
from evidence.leaves.grants import DecidedConsent, RequestedConsent
from evidence.models import Fact
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

REQUEST_LIFETIME = timedelta(days=7)
LEAST_VALIDITY_S = 60
MAX_AT_ONCE = 200
MAX_WAITING = 200  # requests of one agent: somebody has to read them
WIDTH = {ConsentMode.ONCE: 0, ConsentMode.PERIOD: 1, ConsentMode.STANDING: 2}
MODE_WORDS = {
    ConsentMode.ONCE: "for one call",
    ConsentMode.PERIOD: "for a time",
    ConsentMode.STANDING: "until it is revoked",
}
ASKING = ["ask", "hold"]  # what a call says in `on_consent` so that a person is asked about it


def version_range(version: str) -> str:
    """The versions that a consent for ``version`` is for: a new MAJOR is another tool. A prerelease is named as such."""
    return f"^{version}" if "-" in version else f"^{version.partition('.')[0]}"


# Asking.


def check_mode(mode: str, *, widest: str, bound: bool) -> None:
    """No wider than ``widest``; and for one call only when it is known which."""
    if WIDTH[ConsentMode(mode)] > WIDTH[ConsentMode(widest)]:
        raise ConsentTooWide(
            f"A consent {MODE_WORDS[ConsentMode(mode)]} is wider than may be given here: {MODE_WORDS[ConsentMode(widest)]}.",
            remedy=f"Ask for one {MODE_WORDS[ConsentMode(widest)]}.",
            details={"mode": str(mode), "widest": str(widest)},
        )
    if mode == ConsentMode.ONCE and not bound:
        raise ConsentTooWide(
            "A consent for one call is bound to its arguments, so it is asked for with the call itself.",
            remedy="Make the call so that it asks for a consent, or waits for one.",
            details={"mode": str(mode), "on_consent": ASKING},
        )


def request_consent(
    *,
    tool: str,
    versions: str,
    purpose: str,
    validity_s: int,
    by: Principal,
    mode: str = ConsentMode.PERIOD,
    widest: str = ConsentMode.STANDING,
    data_classes: Sequence[str] = (),
    user_fingerprint: str = "",
    arguments_fingerprint: str = "",
    policy_hash: str = "",
    invocation_id: UUID | None = None,
    until: datetime | None = None,
) -> Consent:
    """Ask for permission to use ``tool``. Asking again while a request waits gives the same request back.

    What is asked of a call carries the fingerprint of its arguments and the hash of the policy, so that the person who
    decides may narrow it to this one call. ``until``: when the request runs out.
    """
    if not purpose.strip():
        raise SchemaInvalid.at("/purpose", "Say what the tool will be used for; the person who decides reads it.")
    check_mode(mode, widest=widest, bound=bool(arguments_fingerprint and policy_hash))
    same: dict[str, Any] = {
        "agent_id": by.agent(),
        "tool": tool,
        "versions": versions,
        "user_fingerprint": user_fingerprint,
        "arguments_fingerprint": arguments_fingerprint,
    }
    waiting = same | {"state": ConsentState.REQUESTED}
    with transaction.atomic():
        for stale in Consent.objects.select_for_update().filter(**waiting, expires_at__lte=database_time()):
            _expire(stale)
    if not Consent.objects.filter(**waiting).exists():
        _check_room(by)
    try:
        with transaction.atomic():
            consent = Consent.objects.create(
                **waiting,
                tenant_id=by.tenant_id,
                mode=mode,
                data_classes=list(data_classes),
                policy_hash=policy_hash,
                invocation_id=invocation_id,
                purpose=purpose.strip(),
                validity_s=validity_s,
                requested_by=by.id,
                asked_through=[by.connection.member] if by.connection else [],
                expires_at=until or database_time() + REQUEST_LIFETIME,
            )
            _tell(consent, by)
            return consent
    except IntegrityError:
        # Somebody asked at the same moment, and it may be decided by now: the newest is what there is to know.
        newest = Consent.objects.filter(**same).order_by("-pk").first()
        if newest is None:
            raise
        return _note_asked_through(newest, by)


def _note_asked_through(consent: Consent, by: Principal) -> Consent:
    """Whose program asks for the same once more does not decide on it either."""
    if by.connection is None or by.connection.member in consent.asked_through:
        return consent
    with transaction.atomic():
        locked = Consent.objects.select_for_update().get(pk=consent.pk)
        locked.asked_through = sorted({*locked.asked_through, by.connection.member})
        locked.save(update_fields=["asked_through"])
    return locked


def _check_room(by: Principal) -> None:
    waiting = Consent.objects.in_state(ConsentState.REQUESTED).filter(agent_id=by.agent())
    if waiting.count() >= MAX_WAITING:
        raise Conflict(
            f"{MAX_WAITING} requests of {by.name or 'this agent'} wait for a decision already.",
            remedy="Wait until somebody has decided on some of them, or cancel calls that wait.",
        )


def _tell(consent: Consent, by: Principal) -> None:
    """The fact that a consent was asked for, and word to those who decide."""
    evidence.record(
        kind=Kind.CONSENT_REQUESTED,
        subject=consent.wire_id,
        actor=by,
        tool=consent.tool,
        invocation_id=consent.invocation_id,
        data=RequestedConsent(
            purpose=consent.purpose,
            mode=str(consent.mode),
            validity_s=consent.validity_s,
            versions=consent.versions,
            data_classes=consent.data_classes,
            arguments=consent.arguments_fingerprint,
            policy=consent.policy_hash,
        ),
    )
    said = {"agent": by.name, "tool": consent.tool, "url": console_path(consent)}
    if consent.expires_at:
        said["until"] = consent.expires_at.isoformat(timespec="seconds")
    notify_channels("consent.requested", subject=consent.wire_id, body=said, tenant_id=consent.tenant_id)


def console_path(consent: Consent) -> str:
    return f"/consents/{consent.wire_id}"


def console_url(consent: Consent) -> str:
    """Where a person decides: the link that a caller shows to its user."""
    return f"{settings.TOOLHUB_PUBLIC_URL}{console_path(consent)}"


# Deciding.


def check_may_decide(by: Principal) -> None:
    if by.kind is not ActorKind.USER:
        raise Forbidden("Only a person decides on a consent.")
    by.check("consents.decide")


def _is_asked_for(by: Principal, consent: Consent) -> bool:
    """Whether the agent names this person as its user, as the playground does."""
    if not consent.user_fingerprint:
        return False
    return consent.user_fingerprint == evidence.compute_fingerprint(by.id.encode(), tenant_id=consent.tenant_id)


def check_can_decide(consent: Consent, *, by: Principal) -> None:
    """Only a person decides, never one's own request, never what is asked on one's behalf and never for an agent of one's own."""
    _check_not_asked_by(by, consent)
    if controls_agent(by.id, consent.agent_id):
        raise SelfApproval(
            "You made this agent or a key of it, so somebody else must decide.",
            remedy="Ask another operator to decide.",
        )


def select_decidable(consents: Iterable[Consent], *, by: Principal) -> Iterator[Consent]:
    """Those that the person may decide on, one after the other."""
    own: set[str] | None = None
    for consent in consents:
        try:
            _check_not_asked_by(by, consent)
        except SelfApproval:
            continue
        if own is None:
            own = list_controlled_agents(by.id, by.tenant_id)
        if encode("agt", consent.agent_id) not in own:
            yield consent


def _check_not_asked_by(by: Principal, consent: Consent) -> None:
    check_may_decide(by)
    if by.id == consent.requested_by:
        raise SelfApproval(
            "You asked for this consent, so somebody else must decide.", remedy="Ask another operator to decide."
        )
    if _is_asked_for(by, consent):
        raise SelfApproval(
            "This is asked for on your behalf, so somebody else must decide.", remedy="Ask another operator to decide."
        )
    if by.id in consent.asked_through:
        raise SelfApproval(
            "It was asked for through a program that you have let act as the agent, so somebody else must decide.",
            remedy="Ask another operator to decide.",
        )


def _locked(consent_id: UUID, by: Principal) -> Consent:
    return (
        Consent.objects.select_for_update(of=("self",))
        .select_related("agent")
        .get(pk=consent_id, tenant_id=by.tenant_id)
    )


def _decide(
    consent: Consent,
    state: ConsentState,
    kind: Kind,
    *,
    reason: str,
    by: Principal,
    failed_dry_run: str | None = None,
    **more: Any,
) -> Consent:
    """Write down the decision, with its fact, and say it to those who wait for it."""
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Write why; the reason is kept as evidence.")
    consent.move_to(state)
    consent.decided_by, consent.decided_at, consent.decision_reason = by.id, database_time(), reason.strip()
    for name, value in more.items():
        setattr(consent, name, value)
    consent.save(update_fields=["state", "decided_by", "decided_at", "decision_reason", *more])
    evidence.record(
        kind=kind,
        subject=consent.wire_id,
        actor=by,
        tool=consent.tool,
        invocation_id=consent.invocation_id,
        data=DecidedConsent(
            reason=consent.decision_reason,
            agent=consent.agent.wire_id,
            mode=str(consent.mode),
            expires_at=consent.expires_at.isoformat() if consent.expires_at else None,
            failed_dry_run=failed_dry_run,
        ),
    )
    consent_decided.send(Consent, consent=consent, by=by)
    return consent


def check_failure_seen(failed: str | None, *, acknowledged: str) -> None:
    """A call that has failed as a dry run will hardly do what somebody expects: who approves it says that they know."""
    if failed and failed != acknowledged:
        message = "The dry run of this call has failed. Confirm that you have seen it, or deny."
        raise FailureNotSeen(
            message,
            remedy="Read what it answered and confirm that you have seen it, or deny the request.",
            details={"findings": [{"pointer": "/acknowledged", "message": message}], "call": failed},
        )


@transaction.atomic
def approve_consent(
    *,
    consent_id: UUID,
    reason: str,
    by: Principal,
    mode: str | None = None,
    validity_s: int | None = None,
    acknowledged: str = "",
) -> Consent:
    """Permit what was asked, or less: for one call instead of a time, or for a shorter time.

    ``acknowledged``: the id of the dry run whose failure the person has seen.
    """
    consent = _locked(consent_id, by)
    check_can_decide(consent, by=by)
    chosen = ConsentMode(mode or consent.mode)
    if consent.shown_state == ConsentState.REQUESTED:
        check_mode(chosen, widest=consent.mode, bound=bool(consent.arguments_fingerprint and consent.policy_hash))
    lasts = consent.validity_s if validity_s is None else validity_s
    if not min(LEAST_VALIDITY_S, consent.validity_s) <= lasts <= consent.validity_s:
        raise SchemaInvalid.at(
            "/validity_s", f"Choose {LEAST_VALIDITY_S} to {consent.validity_s} seconds: what was asked, or less."
        )
    failed = next((found for _, found in consent_approving.send(Consent, consent=consent) if found), None)
    check_failure_seen(failed, acknowledged=acknowledged)
    until = None if chosen is ConsentMode.STANDING else database_time() + timedelta(seconds=lasts)
    more: dict[str, Any] = {"mode": chosen, "validity_s": lasts, "expires_at": until, "failed_dry_run": failed}
    return _decide(consent, ConsentState.APPROVED, Kind.CONSENT_APPROVED, reason=reason, by=by, **more)


@transaction.atomic
def deny_consent(*, consent_id: UUID, reason: str, by: Principal) -> Consent:
    consent = _locked(consent_id, by)
    check_can_decide(consent, by=by)
    return _decide(consent, ConsentState.DENIED, Kind.CONSENT_DENIED, reason=reason, by=by)


@transaction.atomic
def revoke_consent(*, consent_id: UUID, reason: str, by: Principal) -> Consent:
    """Take a permission back; it stops counting with the next call. Also one's own agent's: this only narrows."""
    consent = _locked(consent_id, by)
    check_may_decide(by)
    return _decide(consent, ConsentState.REVOKED, Kind.CONSENT_REVOKED, reason=reason, by=by)


@transaction.atomic
def revoke_consents(*, consent_ids: Sequence[UUID], reason: str, by: Principal) -> int:
    """Take several permissions back at once, all or none; how many."""
    if not 0 < len(set(consent_ids)) <= MAX_AT_ONCE:
        raise SchemaInvalid.at("/consents", f"Choose 1 to {MAX_AT_ONCE} consents.")
    return len([revoke_consent(consent_id=each, reason=reason, by=by) for each in sorted(set(consent_ids))])


# Using, running out.


def spend_consent(*, consent_id: UUID, invocation_id: UUID, by: Principal) -> None:
    """Use up a permission for one call, in the transaction that accepts it. Of many calls at once exactly one wins."""
    now = database_time()
    once = Consent.objects.valid(now).filter(pk=consent_id, tenant_id=by.tenant_id, mode=ConsentMode.ONCE)
    tool = once.values_list("tool", flat=True).first()
    if tool is None or not once.update(state=ConsentState.USED, used_at=now):
        raise ConsentRequired(
            "The consent was for one call, and has been used or has ended.",
            remedy="Call again, so that a person is asked about this call.",
            details={"consent": encode("cns", consent_id), "on_consent": ASKING},
        )
    evidence.record(
        kind=Kind.CONSENT_USED, subject=encode("cns", consent_id), actor=by, invocation_id=invocation_id, tool=tool
    )


def _expire(consent: Consent, *, by: Principal | None = None, reason: str = "") -> None:
    """``reason``: a code. Nobody wrote it, so nothing is sealed that an erasure would have to take away."""
    waited = consent.state == ConsentState.REQUESTED
    consent.state = ConsentState.EXPIRED
    consent.save(update_fields=["state"])
    by = by or Principal.system("upkeep", tenant_id=consent.tenant_id)
    evidence.record(
        kind=Kind.CONSENT_EXPIRED,
        subject=consent.wire_id,
        actor=by,
        tool=consent.tool,
        invocation_id=consent.invocation_id,
        reason=reason,
    )
    if waited:
        consent_decided.send(Consent, consent=consent, by=by)


def withdraw_request(consent: Consent, *, by: Principal) -> None:
    """Nobody wants an answer any more: the call that asked was cancelled. The row is locked by the caller."""
    if consent.state == ConsentState.REQUESTED:
        _expire(consent, by=by, reason="CONSENT.CALL_CANCELLED")


def end_subject_consents(*, tenant_id: UUID, user_fingerprint: str, erasure: str, limit: int) -> int:
    """Of a person who was erased: what is in force or waits ends, and nothing tells any more whose it was."""
    rows = Consent.objects.select_for_update().filter(tenant_id=tenant_id, user_fingerprint=user_fingerprint)
    found = list(rows.order_by("pk")[:limit])
    for consent in found:
        if consent.state in (ConsentState.REQUESTED, ConsentState.APPROVED):
            _expire(consent, reason="CONSENT.SUBJECT_ERASED")
        consent.user_fingerprint, consent.arguments_fingerprint = "", f"erased {consent.pk}"
        consent.purpose, consent.decision_reason = ERASED, ERASED if consent.decision_reason else ""
        consent.save(update_fields=["user_fingerprint", "arguments_fingerprint", "purpose", "decision_reason"])
    if found:
        facts = Fact.objects.filter(subject__in=[consent.wire_id for consent in found])
        evidence.erase_free_text(facts, tenant_id=tenant_id, erasure=erasure)
    return len(found)


def expire_consents(*, limit: int = 100) -> int:
    """Write down what has run out. No permission depends on it: every check looks at the time itself."""
    with transaction.atomic():
        due = Consent.objects.select_for_update(skip_locked=True, of=("self",)).filter(
            state__in=[ConsentState.REQUESTED, ConsentState.APPROVED], expires_at__lte=database_time()
        )[:limit]
        found = list(due)
        for consent in found:
            _expire(consent)
    return len(found)
