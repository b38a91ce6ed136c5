"""Policies: how one comes into force.

Drafted by one, tried on past calls, published by another person, superseded by the next, rolled back to. A draft belongs to
who wrote it. What is in force counts with the next call in every process, since each call reads the version's id.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from access.models import POLICY_TRANSITIONS, PolicyState, PolicyVersion, Tenant
from access.notifications.services import notify_channels
from access.policies.findings import is_sound
from access.policies.impact import previews
from access.policies.language import validate_policy
from access.policies.text import build_findings_problem
from access.problems import SelfApproval, SimulationStale
from access.separation_of_duties import controls_agent
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.controls import DiscardedPolicy, DraftedPolicy, PolicyRules, PublishedPolicy, SimulatedPolicy
from kernel.canonical import compute_digest
from kernel.database.tenancy import hub_wide
from kernel.ids import decode
from kernel.principal import ActorKind
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from uuid import UUID

    from kernel.principal import Principal

MAX_NOTE = 1000
TRIES = 3


def _checked_reason(reason: str) -> str:
    if not reason.strip() or len(reason.strip()) > MAX_NOTE:
        raise SchemaInvalid.at("/reason", f"Write why, in at most {MAX_NOTE:,} characters; it is kept as evidence.")
    return reason.strip()


def check_sound(document: Any) -> None:
    findings = validate_policy(document, doubts=False)
    if not is_sound(findings):
        raise build_findings_problem(findings)


# Who may do what to which version.


def check_can_draft_for_hub(by: Principal) -> None:
    if not by.may("hub.manage"):
        raise Forbidden(
            "Only an owner of the hub changes what binds every tenant.",
            remedy="Draft a policy of your tenant instead, or ask an owner of the hub.",
            details={"missing": "hub.manage"},
        )


def check_can_touch(version: PolicyVersion, *, by: Principal) -> None:
    if version.tenant_id is None:
        check_can_draft_for_hub(by)


def check_can_change(version: PolicyVersion, *, by: Principal) -> None:
    """A draft is its author's, so that who publishes it is never one of its authors."""
    check_can_touch(version, by=by)
    _check_state(version, PolicyState.DRAFT, "Only a draft can be changed.", "Start a new draft from this version.")
    if version.drafted_by != by.id:
        raise Forbidden(
            "Only who wrote this draft changes it.", remedy="Start a draft of your own from it; discard this one."
        )


def check_can_discard(version: PolicyVersion, *, by: Principal) -> None:
    check_can_touch(version, by=by)
    _check_state(version, PolicyState.DRAFT, "Only a draft can be discarded.", "Publish a version that supersedes it.")


def check_can_publish(version: PolicyVersion, *, by: Principal) -> None:
    _check_person(by, "Only a person publishes a policy.")
    check_can_touch(version, by=by)
    _check_state(version, PolicyState.DRAFT, "Only a draft can be published.", "Roll back to an earlier version.")
    if by.id == version.drafted_by or _stands_behind(by, version.drafted_by):
        raise SelfApproval(
            "You drafted this policy, so somebody else must publish it.",
            remedy="Ask another owner of the hub (made on the page Tenants) to publish it."
            if version.tenant_id is None
            else "Ask another operator to publish it.",
        )


def check_can_roll_back(version: PolicyVersion, in_force: PolicyVersion | None, *, by: Principal) -> None:
    """Two people stand behind every change of what is in force, also behind the way back."""
    _check_person(by, "Only a person rolls a policy back.")
    check_can_touch(version, by=by)
    _check_state(
        version, PolicyState.SUPERSEDED, "Only a version that was in force can be rolled back to.", "Publish a draft."
    )
    if in_force is not None and in_force.published_by == by.id:
        raise SelfApproval(
            f"You put {in_force.label} in force, so somebody else must take it back.",
            remedy="Ask another operator to roll back, or stop the tools concerned with a kill switch.",
        )


def check_preview_is_fresh(version: PolicyVersion) -> None:
    why = previews.why_stale(version)
    if why:
        raise SimulationStale(why, remedy="Preview the impact again, then publish.")


def _check_seen(version: PolicyVersion, seen: str) -> None:
    if seen and seen != previews.compute_preview_digest(version):
        raise Conflict(
            "The draft or its preview was changed after you opened it.",
            remedy="Read the impact as it is now, then publish.",
        )


def _check_person(by: Principal, sentence: str) -> None:
    if by.kind is not ActorKind.USER:
        raise Forbidden(sentence)


def _check_state(version: PolicyVersion, state: PolicyState, sentence: str, remedy: str) -> None:
    if version.state != state:
        raise Conflict(f"{version.label} is {PolicyState(version.state).label.lower()}. {sentence}", remedy=remedy)


def _stands_behind(by: Principal, author: str) -> bool:
    """Whether the author is an agent that this person made or holds a key of."""
    try:
        return controls_agent(by.id, decode("agt", author))
    except ValueError:
        return False


# Writing.


def _scope(*, hub: bool) -> AbstractContextManager[None]:
    """The hub's own rows are written for the whole hub; PostgreSQL would refuse them to a tenant."""
    return hub_wide() if hub else nullcontext()


def _is_hub(version_id: UUID, by: Principal) -> bool:
    """Of whom the version is; not found unless it may be seen."""
    return PolicyVersion.objects.visible_to(by).values_list("tenant_id", flat=True).get(pk=version_id) is None


def _locked(version_id: UUID, by: Principal) -> PolicyVersion:
    return PolicyVersion.objects.visible_to(by).select_for_update(of=("self",)).get(pk=version_id)


def _move(version: PolicyVersion, to: PolicyState) -> None:
    if to not in POLICY_TRANSITIONS[version.state]:
        raise Conflict(f"{version.label} is {version.state}; it cannot become {to}.")
    version.state = to


def draft_policy(*, document: Any, by: Principal, note: str = "", hub: bool = False) -> PolicyVersion:
    """A new draft with the next number of its owner. It decides nothing until it is published."""
    if hub:
        check_can_draft_for_hub(by)
    check_sound(document)
    for left in range(TRIES, 0, -1):
        try:
            with _scope(hub=hub), transaction.atomic():
                return _draft(document, note, None if hub else by.tenant_id, by)
        except IntegrityError as error:  # somebody took the number at the same moment
            if left == 1:
                raise Conflict("Others are drafting policies at the same moment.", remedy="Try again.") from error
    raise AssertionError("unreachable")


def _draft(document: Any, note: str, tenant_id: UUID | None, by: Principal) -> PolicyVersion:
    taken = PolicyVersion.objects.of_owner(tenant_id).aggregate(most=Max("number"))["most"] or 0
    version = PolicyVersion.objects.create(
        tenant_id=tenant_id,
        number=taken + 1,
        document=document,
        digest=compute_digest(document),
        note=note.strip()[:MAX_NOTE],
        drafted_by=by.id,
    )
    _record(Kind.POLICY_DRAFTED, version, by, DraftedPolicy(**_describe_rules(version), note=version.note[:500]))
    if tenant_id is not None:
        said = {"policy": version.label, "url": f"/policies/{version.wire_id}"}
        notify_channels("policy.waiting", subject=version.wire_id, body=said, tenant_id=tenant_id)
    return version


def change_draft(*, version_id: UUID, document: Any, by: Principal, note: str | None = None) -> PolicyVersion:
    """Another text for a draft. What was simulated of the earlier text counts no more."""
    check_sound(document)
    with _scope(hub=_is_hub(version_id, by)), transaction.atomic():
        version = _locked(version_id, by)
        check_can_change(version, by=by)
        version.document, version.digest, version.simulation = document, compute_digest(document), None
        version.note = version.note if note is None else note.strip()[:MAX_NOTE]
        version.save(update_fields=["document", "digest", "simulation", "note"])
        data = DraftedPolicy(**_describe_rules(version), changed=True, note=version.note[:500])
        _record(Kind.POLICY_DRAFTED, version, by, data)
    return version


def discard_draft(*, version_id: UUID, reason: str, by: Principal) -> PolicyVersion:
    reason = _checked_reason(reason)
    with _scope(hub=_is_hub(version_id, by)), transaction.atomic():
        version = _locked(version_id, by)
        check_can_discard(version, by=by)
        _move(version, PolicyState.DISCARDED)
        version.save(update_fields=["state"])
        _record(Kind.POLICY_DISCARDED, version, by, DiscardedPolicy(**_describe_rules(version), reason=reason))
    return version


def simulate_policy(*, version_id: UUID, by: Principal, calls: int = previews.DEFAULT_CALLS) -> PolicyVersion:
    """Try a draft on the last ``calls`` calls of its owner, and compare it with what is in force. Nothing is locked
    meanwhile; when the draft was changed in between, the result is thrown away.
    """
    if not 1 <= calls <= previews.MAX_CALLS:
        raise SchemaInvalid.at("/calls", f"A simulation takes 1 to {previews.MAX_CALLS:,} calls.")
    hub = _is_hub(version_id, by)
    with _scope(hub=hub):
        draft = PolicyVersion.objects.visible_to(by).get(pk=version_id)
        check_can_touch(draft, by=by)
        _check_state(draft, PolicyState.DRAFT, "Only a draft is tried on past calls.", "Start a draft from it.")
        found = previews.build_preview(draft, calls=calls)
        found |= {"at": timezone.now().isoformat(), "by": by.id}
        with transaction.atomic():
            version = _locked(version_id, by)
            if version.digest != draft.digest or version.state != PolicyState.DRAFT:
                raise Conflict("The draft was changed meanwhile.", remedy="Preview the impact again.")
            version.simulation = found
            version.save(update_fields=["simulation"])
            data = SimulatedPolicy(
                **_describe_rules(version),
                calls=found["calls"],
                unusable=found["unusable"],
                counts=found["counts"],
                analysis=found["analysis"]["summary"],
            )
            _record(Kind.POLICY_SIMULATED, version, by, data)
    return version


def publish_policy(*, version_id: UUID, reason: str, by: Principal, seen: str = "") -> PolicyVersion:
    """Put a draft of somebody else in force, in place of the version before it. ``reason``: what made the publisher agree;
    ``seen``: the digest of the draft and the preview that they read, so that they agree to nothing else.
    """
    reason = _checked_reason(reason)
    hub = _is_hub(version_id, by)
    try:
        with _scope(hub=hub), transaction.atomic():
            version, before = _locked_with_in_force(version_id, by)
            check_can_publish(version, by=by)
            check_sound(version.document)
            check_preview_is_fresh(version)
            _check_seen(version, seen)
            _put_in_force(version, before, by)
            simulation = version.simulation or {}
            data = PublishedPolicy(
                **_describe_rules(version),
                **_following(before),
                counts=simulation["counts"],
                analysis=simulation["analysis"]["summary"],
                drafted_by=version.drafted_by,
                reason=reason,
            )
            _record(Kind.POLICY_PUBLISHED, version, by, data)
    except IntegrityError as error:
        raise Conflict("Another version came into force at the same moment.", remedy="Look at it first.") from error
    return version


def roll_back_policy(*, version_id: UUID, reason: str, by: Principal) -> PolicyVersion:
    """Put a version that was in force before in force again."""
    reason = _checked_reason(reason)
    hub = _is_hub(version_id, by)
    try:
        with _scope(hub=hub), transaction.atomic():
            version, before = _locked_with_in_force(version_id, by)
            check_can_roll_back(version, before, by=by)
            check_sound(version.document)
            _put_in_force(version, before, by)
            analysis = (
                previews.compare_documents(before.document, version.document).summary() if before is not None else None
            )
            data = PublishedPolicy(
                **_describe_rules(version), **_following(before), rolled_back=True, analysis=analysis, reason=reason
            )
            _record(Kind.POLICY_PUBLISHED, version, by, data)
    except IntegrityError as error:
        raise Conflict("Another version came into force at the same moment.", remedy="Look at it first.") from error
    return version


def _locked_with_in_force(version_id: UUID, by: Principal) -> tuple[PolicyVersion, PolicyVersion | None]:
    """The owner is locked first, so that two publications come one after the other."""
    version = PolicyVersion.objects.visible_to(by).get(pk=version_id)
    if version.tenant_id is not None:
        Tenant.objects.select_for_update().get(pk=version.tenant_id)
    rows = PolicyVersion.objects.select_for_update(of=("self",)).filter(
        Q(pk=version_id) | Q(tenant_id=version.tenant_id, state=PolicyState.IN_FORCE)
    )
    found = {row.pk: row for row in rows.order_by("pk")}
    before = next((row for row in found.values() if row.state == PolicyState.IN_FORCE), None)
    return found[version_id], before


def _put_in_force(version: PolicyVersion, before: PolicyVersion | None, by: Principal) -> None:
    if before is not None:
        _move(before, PolicyState.SUPERSEDED)
        before.save(update_fields=["state"])
    _move(version, PolicyState.IN_FORCE)
    version.published_by, version.published_at = by.id, timezone.now()
    version.save(update_fields=["state", "published_by", "published_at"])


def _following(before: PolicyVersion | None) -> dict[str, Any]:
    return {"instead_of": before.label, "instead_of_digest": before.digest} if before is not None else {}


def _describe_rules(version: PolicyVersion) -> dict[str, Any]:
    """What every fact about a version says."""
    return {"label": version.label, "digest": version.digest, "rules": len(version.document["rules"])}


def _record(kind: Kind, version: PolicyVersion, by: Principal, data: PolicyRules) -> None:
    evidence.record(kind=kind, subject=version.wire_id, actor=by, data=data)
