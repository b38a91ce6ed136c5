"""Reviews: who may decide about a submitted version, and what a decision takes.

Nobody decides about their own submission, also not through an agent that they control. High risk takes two people, and each
change that is risky, breaks callers or adds words that models read must be acknowledged by each who approves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.separation_of_duties import controls_agent, list_controlled_agents
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import ReviewedVersion
from kernel.ids import decode
from kernel.problems import Conflict, SchemaInvalid
from registry.installations.resolution import settle_pins
from registry.models import Decision, Review, ToolVersion, VersionState
from registry.problems import NotAcknowledged, OwnSubmission
from registry.versions.bump import changes_now, check_bump, load_lock
from unitools.changes import find_acknowledgement_reason
from unitools.dependency_locks import compute_lock_digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal

APPROVALS_NEEDED = {"Low": 1, "Medium": 1, "High": 2}


def stands_behind(submitted_by: str, *, by: Principal) -> bool:
    """Whether the submission is the reviewer's own: submitted as themselves, or by an agent that they hold a key of."""
    if submitted_by == by.id:
        return True
    try:
        agent_id = decode("agt", submitted_by)
    except ValueError:
        return False
    return controls_agent(by.id, agent_id)


def check_can_review(version: ToolVersion, *, by: Principal) -> None:
    if version.submitted_by == by.id:
        raise OwnSubmission(
            "You submitted this version, so somebody else must review it.", remedy="Ask another reviewer."
        )
    if stands_behind(version.submitted_by, by=by):
        raise OwnSubmission(
            "An agent that you made, or hold a key of, submitted this version, so somebody else must review it.",
            remedy="Ask another reviewer.",
        )
    if any(stands_behind(each, by=by) for each in version.drafted_by):
        raise OwnSubmission(
            "You, or an agent of yours, wrote in this version before it was submitted, so somebody else must review it.",
            remedy="Ask another reviewer.",
        )
    if version.review_state != VersionState.SUBMITTED:
        raise Conflict(f"This version is {version.review_state} already.")
    if version.yanked_at is not None:
        raise Conflict("This version was yanked.", remedy="Submit another version.")
    if version.reviews.filter(decided_by=by.id).exists():
        raise Conflict(
            "You have reviewed this version already.", remedy="A version of high risk needs a second reviewer."
        )


def select_reviewable(versions: QuerySet[ToolVersion], *, by: Principal) -> Iterator[ToolVersion]:
    """Those of them that wait for a review and about which this person may decide."""
    own: set[str] | None = None
    for version in versions.filter(review_state=VersionState.SUBMITTED, yanked_at=None).exclude(
        reviews__decided_by=by.id
    ):
        if own is None:
            own = {by.id, *list_controlled_agents(by.id, by.tenant_id)}
        if own.isdisjoint({version.submitted_by, *version.drafted_by}):
            yield version


def approvals_missing(version: ToolVersion) -> int:
    given = version.reviews.filter(decision=Decision.APPROVE).count()
    return max(0, APPROVALS_NEEDED[version.safety_class] - given)


def changes_to_acknowledge(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes that whoever approves must have seen one by one."""
    return [change for change in changes if find_acknowledgement_reason(change)]


def check_acknowledged(changes: list[dict[str, Any]], acknowledged: Collection[str]) -> None:
    missing = [change for change in changes_to_acknowledge(changes) if change["id"] not in acknowledged]
    if not missing:
        return
    pointers = [change["pointer"] or "/" for change in missing]
    message = f"Confirm each risky change that you have seen; missing: {', '.join(pointers[:10])}."
    raise NotAcknowledged(
        message,
        details={
            "findings": [{"pointer": "/acknowledged", "message": message}],
            "missing": [{"id": change["id"], "pointer": change["pointer"]} for change in missing],
        },
        remedy="Tick the changes on the review page, or refuse the version.",
    )


def check_locked(version: ToolVersion) -> None:
    """Which code of others comes along is a part of what is approved."""
    if version.view.dependencies and not load_lock(version):
        message = "It is not known yet which code its dependencies bring: they are not resolved."
        raise Conflict(
            message,
            details={"findings": [{"pointer": "/dependencies", "message": message}]},
            remedy="Wait until they are resolved; when that has failed, the page of the version says why.",
        )


@transaction.atomic
def review_version(
    *, version_id: UUID, decision: Decision, note: str, by: Principal, acknowledged: Iterable[str] = ()
) -> Review:
    """Approve or refuse a submitted version. High risk takes two people; one refusal is enough."""
    version = (
        ToolVersion.objects.select_for_update(of=("self",))
        .select_related("tool__current")
        .get(pk=version_id, tool__tenant_id=by.tenant_id)
    )
    check_can_review(version, by=by)
    if decision is Decision.REFUSE and not note.strip():
        raise SchemaInvalid.at("/note", "Write why you refuse, so that the developer knows what to change.")
    base, changes = changes_now(version)
    seen = sorted(set(acknowledged) & {change["id"] for change in changes_to_acknowledge(changes)})
    if decision is Decision.APPROVE:
        check_locked(version)
        check_bump(base, version.manifest)
        check_acknowledged(changes, seen)
    review = Review.objects.create(
        version=version, decision=decision, note=note.strip(), acknowledged=seen, decided_by=by.id
    )
    if decision is Decision.REFUSE or approvals_missing(version) == 0:
        version.review_state = VersionState.REFUSED if decision is Decision.REFUSE else VersionState.APPROVED
        version.save(update_fields=["review_state"])
    evidence.record(
        kind=Kind.TOOL_REVIEWED,
        subject=version.tool.urn,
        actor=by,
        tool=version.tool.name,
        data=ReviewedVersion(
            version=version.version,
            id=version.wire_id,
            decision=str(decision),
            note=review.note,
            acknowledged=seen,
            lock=compute_lock_digest(lock) if (lock := load_lock(version)) else "",
            state=version.review_state,
        ),
    )
    if version.review_state == VersionState.APPROVED:
        settle_pins(version.tool, why=f"{version.version} was approved", by=by)
    return review
