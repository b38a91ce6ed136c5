"""Trial runs: a version run with written arguments, in a box that reaches nothing, and what came of it.

The same fence as around a replay (:mod:`invocations.replays.isolation`). The limits are those that the manifest asks for, since no
grant and no policy lowers them here; the box is at least as isolated as the policies in force demand for calls of the tool. What it
answers is judged as a call's result is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from access.members.principals import find_member_principal
from access.policies.impact.previews import layers_in_force
from access.policies.verdict import evaluate_policies
from access.problems import Halted
from evidence import services as evidence
from evidence.keys.subject_keys import is_in_use
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from invocations.decide.profiles import build_run_profile, choose_isolation
from invocations.end.endings import NOTHING
from invocations.models import State
from invocations.replays.isolation import build_comparison_call, isolate_profile
from invocations.replays.rerun import CannotRerun, check_runs_alone, run_alone, stage_version
from invocations.trials.services import check_can_try
from kernel.database.connections import release_connection
from kernel.ids import new_id
from kernel.problems import Conflict
from registry.installations.setup import compute_config_digest
from registry.models import Installation, InstallationState
from registry.problems import OwnSubmission
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from evidence.models import SubjectKey
    from invocations.end.endings import Ending
    from invocations.replays.models import Replay
    from invocations.sandbox.base import Profile, RunOutcome, SandboxCall
    from registry.models import ToolVersion


@dataclass(slots=True)
class TrialOutcome:
    """``why``: it could not be run, a word of invocations.replays.labels.WHY. ``answer`` is for who wrote the arguments, and sealed
    with ``key``.
    """

    why: str = ""
    state: str = ""
    problem: str = ""
    duration_ms: int = 0
    notes: list[str] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    key: SubjectKey | None = None

    def to_json(self) -> dict[str, Any]:
        """What is kept of it for everybody: no value."""
        return {
            "why": self.why,
            "state": self.state,
            "problem": self.problem,
            "duration_ms": self.duration_ms,
            "notes": self.notes,
        }


def run_trial(row: Replay) -> TrialOutcome:
    version = row.version
    assert version is not None
    try:
        check_runs_alone(version)
        _check_still_wanted(row, version)
        return _run(row, version)
    except CannotRerun as cannot:
        return TrialOutcome(cannot.why)


def _check_still_wanted(row: Replay, version: ToolVersion) -> None:
    """What was looked at when somebody asked for it may be another thing by now."""
    if version.yanked_at is not None:
        raise CannotRerun("version_yanked")
    by = find_member_principal(row.asked_by, tenant_id=row.tenant_id)
    if by is None:
        raise CannotRerun("may_not_try")
    try:
        check_can_try(version, by=by)
    except OwnSubmission:
        raise CannotRerun("may_not_try") from None
    except Halted:
        raise CannotRerun("halted") from None
    except Conflict:
        raise CannotRerun("version_decided") from None


def _run(row: Replay, version: ToolVersion) -> TrialOutcome:
    snapshot, sealed = _open_written(row)
    profile, taken = _build_profile(version)
    staged, now = stage_version(version), datetime.now(UTC).isoformat()
    call = build_comparison_call(
        new_id(),
        version,
        sealed,
        package=staged.package,
        dependencies=staged.dependencies,
        image=staged.image,
        context={"dry_run": True, "started_at": now, "now": now},
        config=_find_config(row, version),
    )
    release_connection()  # nothing of the database is held while the tool runs
    ending, outcome = _run_in_box(version, profile, call)
    return TrialOutcome(
        state=str(ending.state),
        problem=ending.problem.reason if ending.problem else "",
        duration_ms=round(outcome.duration_ms),
        notes=[f"trial_without_{each}" for each in taken],
        answer=_describe_answer(ending),
        key=snapshot.subject_key,
    )


def _build_profile(version: ToolVersion) -> tuple[Profile, list[str]]:
    """With the words for what the fence takes of it. Policies are asked about the tool alone: a rule that asks what only a call has
    counts too, so that no trial is less isolated than any call of the tool would be.
    """
    compiled = compiled_version(version.pk)
    verdict = evaluate_policies(layers_in_force(version.tool.tenant_id), compiled.attributes)
    level = choose_isolation(verdict, compiled.isolation)
    profile = build_run_profile(compiled.asks, level, verdict.untrusted, compiled.idle_ms)
    return isolate_profile(profile, accepted=compiled.isolation)


def _run_in_box(version: ToolVersion, profile: Profile, call: SandboxCall) -> tuple[Ending, RunOutcome]:
    try:
        return run_alone(version, profile, call, limiters={})
    except CannotRerun as cannot:
        if profile.untrusted and cannot.why == "no_box":
            raise CannotRerun("untrusted") from cannot
        raise


def _open_written(row: Replay) -> tuple[Snapshot, dict[str, Any]]:
    rows = Snapshot.objects.select_related("subject_key__tenant_key")
    snapshot = rows.filter(tenant_id=row.tenant_id, invocation_id=row.pk, kind=SnapshotKind.INPUT).first()
    if snapshot is None:
        raise CannotRerun("no_values")
    try:
        return snapshot, evidence.open_values(snapshot)
    except ValuesErased:
        raise CannotRerun("erased") from None
    except KeyUnavailable:
        raise CannotRerun("key_unavailable") from None


def _find_config(row: Replay, version: ToolVersion) -> dict[str, Any]:
    """What the tenant has set for this very tool, and not for another publisher's of its name; a new tool is run without. Held against
    the version as before a call.
    """
    rows = Installation.objects.filter(tenant_id=row.tenant_id, tool_id=version.tool_id)
    installed = rows.exclude(state=InstallationState.REMOVED).first()
    config: dict[str, Any] = installed.config if installed is not None else {}
    if version.view.config_schema is not None and not compute_config_digest(config, version.view):
        raise CannotRerun("config_unfit")
    return config


def _describe_answer(ending: Ending) -> dict[str, Any]:
    found: dict[str, Any] = {"warnings": [str(each) for each in ending.warnings]}
    if ending.state == State.SUCCEEDED and ending.output is not NOTHING:
        found["data"] = ending.output
        found["artifacts"] = [{"name": each.name, "media_type": each.media_type} for each in ending.artifacts]
    if ending.problem is not None:
        found["error"] = {
            "detail": ending.problem.detail,
            "details": ending.problem.details,
            "remedy": ending.problem.remedy,
        }
    return found


def keep_answer(row: Replay, outcome: TrialOutcome) -> None:
    """Sealed beside what was written. Of a person who was erased while it ran nothing is kept."""
    if outcome.answer is None or outcome.key is None:
        return
    try:
        with transaction.atomic():
            evidence.seal_values(
                tenant_id=row.tenant_id,
                invocation_id=row.pk,
                kind=SnapshotKind.OUTPUT,
                value=outcome.answer,
                key=outcome.key,
            )
    except IntegrityError:  # the database refuses values under a destroyed key
        if is_in_use(outcome.key):
            raise
