"""Replays: who requests one, of what, and who ends it.

A replay opens stored values, so whoever asks says why, and that is a fact before anything is opened.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.models import PolicyState, PolicyVersion, Tenant
from access.object_permissions.rules import allowed_on
from access.policies.compiler import PolicyUnreadable, compile_policy
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.replays import ReplayBegin, ReplayedValues, ReplayEnd
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import RevealReasonTooShort
from invocations.models import Invocation
from invocations.queue.outbox import notify_replay_worker
from invocations.replays.models import OF_PERIODS, REPLAY_OPEN, Replay, ReplayState, What
from kernel.database.connections import database_time
from kernel.problems import Conflict, SchemaInvalid
from registry.models import Installation, ToolVersion, VersionState
from registry.reviews.services import stands_behind

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import Tool

MOST_RUNS, MOST_READ = 1_000, 1_000_000  # calls of one replay: run again; only read
MOST_OPEN = 20  # replays of a tenant at a time
TRIED_WITHIN = timedelta(days=7)  # of a call that a version under review is tried with


def check_reason(reason: str) -> str:
    if len(reason.strip()) < evidence.MIN_REASON:
        raise RevealReasonTooShort()
    return reason.strip()[:500]


def check_can_request(by: Principal) -> None:
    """Within the transaction that adds the row: of those who ask at once each counts what the one before has added."""
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    if Replay.objects.visible_to(by).filter(state__in=REPLAY_OPEN).count() >= MOST_OPEN:
        raise Conflict(
            f"{MOST_OPEN} replays of this tenant wait or run.", remedy="Wait until one has ended, or cancel one."
        )


def find_approved_version(tool: Tool, version: str) -> ToolVersion:
    """An approved version of the tool that was not yanked: what nobody answers for is not run, in a replay neither."""
    rows = ToolVersion.objects.filter(tool=tool, version=version, review_state=VersionState.APPROVED)
    found = rows.filter(yanked_at=None).first()
    if found is None:
        raise SchemaInvalid.at("/version", f"{tool.name} has no approved version {version[:64]}.")
    return found


def find_runnable_version(invocation: Invocation, version: str, *, by: Principal) -> ToolVersion:
    """An approved version; or one under review, for who may decide about it and has no part in it, with a call of the last days: the
    box of a replay reaches nothing, so that code can be tried before anybody answers for it.
    """
    assert invocation.version is not None
    tool = invocation.version.tool
    found = ToolVersion.objects.filter(tool=tool, version=version, review_state=VersionState.SUBMITTED).first()
    if found is None or not may_try_unreviewed(found, by=by):
        return find_approved_version(tool, version)
    if invocation.created_at < datetime.now(UTC) - TRIED_WITHIN:
        raise SchemaInvalid.at(
            "/version", f"A version under review is tried with a call of the last {TRIED_WITHIN.days} days."
        )
    return found


def may_try_unreviewed(version: ToolVersion, *, by: Principal) -> bool:
    """Whether somebody may have a version run that nobody has approved: as its reviewer, and not as one of its authors."""
    return (
        version.tool.tenant_id == by.tenant_id
        and version.yanked_at is None
        and "tools.review" in allowed_on(by, version.tool)
        and not any(stands_behind(each, by=by) for each in (version.submitted_by, *version.drafted_by))
    )


@transaction.atomic
def replay_call(
    *, invocation_id: UUID, reason: str, version: str = "", todays_image: bool = False, by: Principal
) -> Replay:
    """Have one call rebuilt from its facts, decided again and run again. ``version``: run this one, and not the recorded one; its
    reviewer may name one that is under review.
    """
    invocation = Invocation.objects.visible_to(by).select_related("version__tool").get(pk=invocation_id)
    check_can_request(by)
    other = None
    if version and invocation.version is not None and version != invocation.version.version:
        other = find_runnable_version(invocation, version, by=by)
    return request_replay(
        by, reason, what=What.RUNS, invocation=invocation, version=other, todays_image=todays_image, total=1, most=1
    )


@transaction.atomic
def replay_period(
    *,
    what: str,
    since: datetime,
    until: datetime,
    reason: str,
    by: Principal,
    most: int = 100,
    tool: str = "",
    version: str = "",
    policy_id: UUID | None = None,
    todays_image: bool = False,
) -> Replay:
    """Have the calls of a period gone through again, the first ``most`` of them."""
    check_can_request(by)
    if what not in OF_PERIODS:
        raise SchemaInvalid.at("/what", f"Say what: {', '.join(OF_PERIODS)}.")
    if since >= until:
        raise SchemaInvalid.at("/until", "A period must end after it begins.")
    allowed = MOST_RUNS if what == What.RUNS else MOST_READ
    if not 1 <= most <= allowed:
        raise SchemaInvalid.at("/most", f"One replay takes 1 to {allowed:,} calls.")
    return request_replay(
        by,
        reason,
        what=what,
        since=since,
        until=until,
        tool=tool,
        most=most,
        total=0,
        version=_version_for(what, tool, version, by=by),
        policy=_policy_for(what, policy_id, by=by),
        todays_image=todays_image and what == What.RUNS,
    )


def _version_for(what: str, tool: str, version: str, *, by: Principal) -> ToolVersion | None:
    if not version:
        return None
    if what != What.RUNS or not tool:
        raise SchemaInvalid.at("/version", "Another version is run: name its tool, and `runs` as what.")
    installed = Installation.objects.visible_to(by).filter(name=tool).select_related("version__tool").first()
    if installed is None or installed.version is None:
        raise SchemaInvalid.at("/tool", "There is no tool of this name here.")
    return find_approved_version(installed.version.tool, version)


def _policy_for(what: str, policy_id: UUID | None, *, by: Principal) -> PolicyVersion | None:
    if policy_id is None:
        return None
    if what != What.DECISIONS:
        raise SchemaInvalid.at("/policy", "Another policy decides: name `decisions` as what.")
    by.check("policies.view")
    found = PolicyVersion.objects.visible_to(by).exclude(state=PolicyState.DISCARDED).get(pk=policy_id)
    try:
        compile_policy(found.document, found.label, found.digest)
    except PolicyUnreadable as error:
        raise SchemaInvalid.at("/policy", f"{found.label} cannot decide: {error}") from error
    return found


def request_replay(by: Principal, reason: str, *, arguments: ReplayedValues | None = None, **fields: Any) -> Replay:
    """The row, its fact and a ring for the workers. ``arguments``: what binds those that somebody has written for it."""
    now = datetime.now(UTC)
    # Whether stored values are held against their commitments; a run opens the arguments in any case.
    result = {"opens": arguments is None and by.may("evidence.reveal")}
    row = Replay.objects.create(
        tenant_id=by.tenant_id,
        reason=check_reason(reason),
        asked_by=by.id,
        notified_at=database_time(),
        created_at=now,
        result=result,
        **fields,
    )
    evidence.record(
        kind=Kind.REPLAY_BEGAN,
        subject=row.wire_id,
        actor=by,
        invocation_id=row.invocation_id,
        tool=row.invocation.tool if row.invocation else row.tool,
        data=ReplayBegin(
            opens=result["opens"],
            what=row.what,
            reason=row.reason,
            period=[row.since.isoformat(), row.until.isoformat()] if row.since and row.until else [],
            most=row.most,
            version=row.version.version if row.version else "",
            policy=row.policy.wire_id if row.policy else "",
            todays_image=row.todays_image,
            arguments=arguments,
        ),
    )
    transaction.on_commit(notify_replay_worker)
    return row


@transaction.atomic
def cancel_replay(*, replay_id: UUID, by: Principal) -> Replay:
    """End a replay; one that a worker is at ends with the call that it is at."""
    row = Replay.objects.visible_to(by).select_for_update(of=("self",)).get(pk=replay_id)
    if row.is_final:
        raise Conflict("This replay has ended.", remedy="Nothing is to be done.", details={"state": row.state})
    row.cancel_asked_at = datetime.now(UTC)
    changed = ["cancel_asked_at"]
    if row.state == ReplayState.QUEUED:
        row.state, row.finished_at = ReplayState.CANCELLED, row.cancel_asked_at
        changed += ["state", "finished_at"]
        record_replay_end(row, actor=by)
    row.save(update_fields=changed)
    return row


def record_replay_end(row: Replay, *, actor: Principal) -> None:
    """In the transaction in which it ends."""
    answers = Snapshot.objects.filter(tenant_id=row.tenant_id, invocation_id=row.pk, kind=SnapshotKind.OUTPUT)
    answer = answers.first() if row.what == What.TRIAL else None
    evidence.record(
        kind=Kind.REPLAY_ENDED,
        subject=row.wire_id,
        actor=actor,
        invocation_id=row.invocation_id,
        tool=row.tool,
        outcome=row.state,
        data=ReplayEnd(
            what=row.what,
            done=row.done,
            verdict=row.verdict,
            counts=row.result.get("counts", {}),
            values=ReplayedValues.of(answer) if answer else None,
        ),
    )
