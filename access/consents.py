"""How does a person's permission come about, and does it hold for this call?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils import timezone

from access.models import Consent, ConsentMode, ConsentState
from access.problems import ConsentRequired, SelfApproval
from evidence import services as evidence
from evidence.kinds import Kind
from toolhub.kernel.ids import encode
from toolhub.kernel.principal import ActorKind, Principal
from toolhub.kernel.problems import Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

REQUEST_LIFETIME = timedelta(days=7)


def request_consent(*, tool: str, versions: str, purpose: str, validity_s: int, by: Principal) -> Consent:
    """Ask for permission to use ``tool``. Asking again while a request waits gives the same request back."""
    if not purpose.strip():
        message = "Say what the tool will be used for; the person who decides reads it."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/purpose", "message": message}]})
    same = {"agent_id": by.agent(), "tool": tool, "versions": versions, "state": ConsentState.REQUESTED}
    with transaction.atomic():
        for stale in Consent.objects.select_for_update().filter(**same, expires_at__lte=timezone.now()):
            _expire(stale)
    try:
        with transaction.atomic():
            consent = Consent.objects.create(
                **same,
                tenant_id=by.tenant_id,
                purpose=purpose.strip(),
                validity_s=validity_s,
                requested_by=by.id,
                expires_at=timezone.now() + REQUEST_LIFETIME,
            )
            evidence.record(
                kind=Kind.CONSENT_REQUESTED,
                subject=consent.wire_id,
                actor=by,
                tool=tool,
                data={"purpose": consent.purpose, "validity_s": validity_s, "versions": versions},
            )
            return consent
    except IntegrityError:
        # Somebody asked at the same moment, and it may be decided by now: the newest is what there is to know.
        newest = Consent.objects.filter(agent_id=by.agent(), tool=tool, versions=versions).order_by("-pk").first()
        if newest is None:
            raise
        return newest


def check_can_decide(consent: Consent, *, by: Principal) -> None:
    """Only a person decides, and never one's own request."""
    if by.kind is not ActorKind.USER:
        raise Forbidden("Only a person decides on a consent.")
    if by.id == consent.requested_by:
        raise SelfApproval(
            "You asked for this consent, so somebody else must decide.", remedy="Ask another operator to decide."
        )


def _locked(consent_id: UUID, by: Principal) -> Consent:
    return (
        Consent.objects.select_for_update(of=("self",))
        .select_related("agent")
        .get(pk=consent_id, tenant_id=by.tenant_id)
    )


def _decide(consent: Consent, state: ConsentState, kind: Kind, *, reason: str, by: Principal) -> Consent:
    if not reason.strip():
        message = "Write why; the reason is kept as evidence."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/reason", "message": message}]})
    check_can_decide(consent, by=by)
    consent.move_to(state)
    now = timezone.now()
    consent.decided_by, consent.decided_at, consent.decision_reason = by.id, now, reason.strip()
    fields = ["state", "decided_by", "decided_at", "decision_reason"]
    if state is ConsentState.APPROVED:
        consent.expires_at = now + timedelta(seconds=consent.validity_s)
        fields.append("expires_at")
    consent.save(update_fields=fields)
    evidence.record(
        kind=kind,
        subject=consent.wire_id,
        actor=by,
        tool=consent.tool,
        data={
            "reason": consent.decision_reason,
            "agent": consent.agent.wire_id,
            "expires_at": consent.expires_at.isoformat() if consent.expires_at else None,
        },
    )
    return consent


@transaction.atomic
def approve_consent(*, consent_id: UUID, reason: str, by: Principal) -> Consent:
    """Permit what was asked, from now on for as long as was asked."""
    return _decide(_locked(consent_id, by), ConsentState.APPROVED, Kind.CONSENT_APPROVED, reason=reason, by=by)


@transaction.atomic
def deny_consent(*, consent_id: UUID, reason: str, by: Principal) -> Consent:
    return _decide(_locked(consent_id, by), ConsentState.DENIED, Kind.CONSENT_DENIED, reason=reason, by=by)


@transaction.atomic
def revoke_consent(*, consent_id: UUID, reason: str, by: Principal) -> Consent:
    """Take a permission back; it stops counting with the next call."""
    return _decide(_locked(consent_id, by), ConsentState.REVOKED, Kind.CONSENT_REVOKED, reason=reason, by=by)


def spend_consent(*, consent_id: UUID, invocation_id: UUID, by: Principal) -> None:
    """Use up a permission for one call, in the transaction that accepts it. Of many calls at once exactly one wins."""
    now = timezone.now()
    once = Consent.objects.valid(now).filter(pk=consent_id, tenant_id=by.tenant_id, mode=ConsentMode.ONCE)
    tool = once.values_list("tool", flat=True).first()
    if tool is None or not once.update(state=ConsentState.USED, used_at=now):
        raise ConsentRequired(
            "The consent was for one call, and has been used or has ended.",
            remedy="Call again with `on_consent` set to `ask` or `hold`, so that a person is asked about this call.",
            details={"consent": encode("cns", consent_id)},
        )
    evidence.record(
        kind=Kind.CONSENT_USED, subject=encode("cns", consent_id), actor=by, invocation_id=invocation_id, tool=tool
    )


def _expire(consent: Consent) -> None:
    consent.state = ConsentState.EXPIRED
    consent.save(update_fields=["state"])
    evidence.record(
        kind=Kind.CONSENT_EXPIRED,
        subject=consent.wire_id,
        actor=Principal.system("upkeep", tenant_id=consent.tenant_id),
        tool=consent.tool,
    )


def expire_consents(*, limit: int = 100) -> int:
    """Write down what has run out. Nothing depends on it: every check looks at the time itself."""
    with transaction.atomic():
        due = Consent.objects.select_for_update(skip_locked=True, of=("self",)).filter(
            state__in=[ConsentState.REQUESTED, ConsentState.APPROVED], expires_at__lte=timezone.now()
        )[:limit]
        found = list(due)
        for consent in found:
            _expire(consent)
    return len(found)


def find_consent(*, agent_id: UUID, tool: str, versions: str) -> Consent | None:
    """The consent that holds longest now, if there is one."""
    valid = Consent.objects.valid(timezone.now()).filter(agent_id=agent_id, tool=tool, versions=versions)
    return valid.order_by("-expires_at").first()


def check_has_consent(*, agent_id: UUID, tool: str, versions: str) -> Consent:
    consent = find_consent(agent_id=agent_id, tool=tool, versions=versions)
    if consent is None:
        raise ConsentRequired(
            f"A person must agree before this agent uses {tool}.",
            remedy="Ask with POST /api/v1/consents, then wait until an operator has approved it.",
            details={
                "tool": tool,
                "request": {"method": "POST", "path": "/api/v1/consents", "body": {"tool": tool, "purpose": "…"}},
            },
        )
    return consent
