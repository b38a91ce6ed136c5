"""Rerun: whether the same call gives the same again.

The recorded arguments, clock and seed go to the recorded code in a box that reaches nothing
(:mod:`invocations.replays.isolation`); what
comes back is judged as a call's result is, with the same obligations, and compared. What differs is run again, to see whether the tool
agrees with itself. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import ENDS
from evidence.leaves.call_begins import Begin, CalledTool
from evidence.leaves.call_ends import End
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from invocations.end.endings import NOTHING, Ending
from invocations.end.obligation_enforcement import enforce_obligations
from invocations.end.outcomes import build_ending
from invocations.models import Invocation, State
from invocations.problems import BuildChanged, ImageMissing
from invocations.replays.isolation import build_comparison_call, isolate_profile
from invocations.replays.json_differences import find_differences, mask_pointers
from invocations.replays.models import ReplayVerdict
from invocations.run.staged_packages import find_run_image, stage_package
from invocations.run_profiles.services import load_profile
from invocations.sandbox.base import IMAGE_MISSING, Profile, RunStatus
from invocations.sandbox.factory import current_sandbox
from invocations.step_log import StepLog
from invocations.value_keys import find_values_key
from kernel.canonical import compute_digest
from kernel.database.connections import release_connection
from kernel.ids import new_id
from registry.dependencies import find_dependency_folder
from registry.installations.setup import compute_config_digest
from registry.models import VersionState
from registry.problems import DependenciesNotReady
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome, SandboxCall
    from registry.models import ToolVersion

RUNS = 3  # of a call that differs
RAN = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT)


class CannotRerun(Exception):
    """The call cannot be run again. ``why`` is a word of invocations.replays.labels.WHY."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


@dataclass(slots=True)
class RerunComparison:
    """What a rerun has found. ``values`` is for whoever may reveal: both sides, and where they differ."""

    verdict: ReplayVerdict
    why: str = ""
    notes: list[str] = field(default_factory=list)
    image: str = ""
    runs: int = 0
    state: str = ""
    problem: str = ""
    differences: int = 0
    values: dict[str, Any] | None = None


@dataclass(slots=True)
class _PreparedRun:
    call: SandboxCall
    profile: Profile
    taken: list[str]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class StagedCode:
    """The code of a version where a box can be given it."""

    package: bytes
    dependencies: Path | None
    image: str


def rerun_call(
    invocation: Invocation, *, version: ToolVersion | None = None, todays_image: bool = False
) -> RerunComparison:
    """Run a call again and compare. ``version``: in place of the recorded one."""
    ran = version or invocation.version
    try:
        recorded, end = _recorded(invocation)
        assert ran is not None
        prepared = _prepare(invocation, ran, end, todays_image=todays_image)
        release_connection()  # nothing of the database is held while the tool runs
        return _compared(invocation, ran, recorded, prepared, end)
    except CannotRerun as cannot:
        return RerunComparison(ReplayVerdict.CANNOT, cannot.why)


def read_end(invocation: Invocation) -> End:
    """What the End fact says."""
    fact = Fact.objects.of_calls(invocation.pk).filter(tenant_id=invocation.tenant_id, kind__in=ENDS).first()
    return fact.read_data(End) if fact else End.from_data(None)


def open_snapshot(invocation: Invocation, kind: SnapshotKind) -> Any:
    """A stored value of the call; None where it is not kept."""
    snapshot = Snapshot.objects.filter(invocation_id=invocation.pk, tenant_id=invocation.tenant_id, kind=kind).first()
    if snapshot is None:
        return None
    try:
        return evidence.open_values(snapshot)
    except ValuesErased:
        raise CannotRerun("erased") from None
    except KeyUnavailable:
        raise CannotRerun("key_unavailable") from None


def _recorded(invocation: Invocation) -> tuple[dict[str, Any], End]:
    """How the call ended, in the form that is compared, and its End fact."""
    if not invocation.is_final:
        raise CannotRerun("not_ended")
    if invocation.state in (State.DENIED, State.EXPIRED) or not invocation.attempt:
        raise CannotRerun("nothing_ran")
    if invocation.state not in RAN or invocation.version is None:
        raise CannotRerun("cut_off")
    found: dict[str, Any] = {"state": invocation.state, "reason": invocation.reason}
    output, error = open_snapshot(invocation, SnapshotKind.OUTPUT), open_snapshot(invocation, SnapshotKind.ERROR)
    if output is not None:
        found |= {name: output[name] for name in ("data", "post_execution_plan", "obligations")}
        found["artifacts"] = [_describe_artifact(each) for each in output.get("artifacts", [])]
    if error is not None:
        found["error"] = {name: error[name] for name in ("detail", "details")}
    return found, read_end(invocation)


def _describe_artifact(artifact: dict[str, Any]) -> dict[str, Any]:
    return {name: artifact[name] for name in ("name", "media_type", "digest")}


def _prepare(invocation: Invocation, version: ToolVersion, end: End, *, todays_image: bool) -> _PreparedRun:
    run = end.run
    if any(each is not None for each in (end.connections, end.all_connections, end.connections_elsewhere)):
        raise CannotRerun("network")
    check_runs_alone(version)
    other = version.pk != invocation.version_id
    if other and version.yanked_at is not None:  # the recorded one may have been yanked for what is looked into
        raise CannotRerun("version_yanked")
    sealed = open_snapshot(invocation, SnapshotKind.INPUT)
    if sealed is None:
        raise CannotRerun("no_values")
    compiled = compiled_version(version.pk)
    profile, taken = isolate_profile(_find_profile(invocation), accepted=compiled.isolation)
    if other and not compiled.input_validator.is_valid(sealed["arguments"]):
        raise CannotRerun("not_taken")
    notes = [f"without_{each}" for each in taken]
    image = run.image if run else ""
    if other or todays_image or (run and run.level == "direct"):
        image = ""
        notes += ["other_version"] if other else ["todays_image"] if todays_image else ["ran_directly"]
    config, config_is_another = _config_of(invocation, version)
    notes += ["config"] if config_is_another else []
    notes += ["under_review"] if version.review_state == VersionState.SUBMITTED else []
    notes += ["no_seed"] if "seed" not in sealed else []
    notes += ["program_clock"] if version.view.program else []
    staged = stage_version(version, image=image)
    context = {
        "dry_run": invocation.dry_run,
        "started_at": invocation.created_at.isoformat(),
        "now": (run and run.clock) or (invocation.started_at or invocation.created_at).isoformat(),
    }
    call = build_comparison_call(
        new_id(),
        version,
        sealed,
        package=staged.package,
        dependencies=staged.dependencies,
        image=staged.image,
        context=context,
        config=config,
    )
    return _PreparedRun(call, profile, taken, notes)


def _find_profile(invocation: Invocation) -> Profile:
    try:
        return load_profile(invocation)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ):  # gone, changed, or of a version that wrote it differently
        raise CannotRerun("profile") from None


def check_runs_alone(version: ToolVersion) -> None:
    """Whether a version can be run in a box that reaches nothing, and may be."""
    if version.view.is_by_gate:  # also of a call that got no further than its arguments
        raise CannotRerun("network")
    if version.view.is_model:
        raise CannotRerun("model")
    if version.review_state == VersionState.REFUSED:
        raise CannotRerun("version_refused")
    if version.view.capabilities.get("browser"):
        raise CannotRerun("browser")


def stage_version(version: ToolVersion, *, image: str = "") -> StagedCode:
    """``image``: the one to run in; empty: the one that a call would."""
    try:
        package = stage_package(version)
        dependencies = find_dependency_folder(version)
        image = image or find_run_image(version)
    except BuildChanged:
        raise CannotRerun("code_changed") from None
    except ImageMissing:
        raise CannotRerun("image_gone") from None
    except DependenciesNotReady:
        raise CannotRerun("dependencies") from None
    return StagedCode(package, dependencies[1] if dependencies else None, image)


def run_alone(
    version: ToolVersion, profile: Profile, call: SandboxCall, *, limiters: Mapping[str, str]
) -> tuple[Ending, RunOutcome]:
    """One run, judged as a call's."""
    outcome = current_sandbox().run(profile, call)
    if outcome.status is RunStatus.START_FAILED:
        raise CannotRerun("image_gone" if outcome.error_code == IMAGE_MISSING else "no_box")
    if outcome.status in (RunStatus.LOST, RunStatus.CANCELLED):
        raise CannotRerun("no_box")
    steps = StepLog(datetime.now(UTC))
    return build_ending(version, outcome, steps, limits=profile.limits, limiters=limiters, counts=False), outcome


def _config_of(invocation: Invocation, version: ToolVersion) -> tuple[dict[str, Any], bool]:
    """What the tenant has set for the tool now, and whether that is another thing than at the time of the call."""
    installation = invocation.installation
    config: dict[str, Any] = installation.config if installation is not None else {}
    tool = _begin_tool(invocation)
    then = tool.config if tool else ""
    return config, bool(then) and compute_config_digest(config, version.view) != then


def _begin_tool(invocation: Invocation) -> CalledTool | None:
    rows = Fact.objects.of_calls(invocation.pk).filter(tenant_id=invocation.tenant_id).order_by("id")
    first = rows.first()
    return first.read_data(Begin).tool if first else None


def _once(
    invocation: Invocation, version: ToolVersion, prepared: _PreparedRun
) -> tuple[dict[str, Any], Ending, RunOutcome]:
    """One run, judged as a call's, in the form that is compared."""
    ending, outcome = run_alone(version, prepared.profile, prepared.call, limiters=invocation.limiters)
    if invocation.obligations:
        validator = compiled_version(version.pk).output_validator
        steps = StepLog(datetime.now(UTC))
        ending = enforce_obligations(
            ending, invocation.obligations, call_id=invocation.wire_id, validator=validator, steps=steps
        )
    said: dict[str, Any] = {"state": str(ending.state), "reason": ending.problem.reason if ending.problem else ""}
    if ending.output is not NOTHING:
        said |= {"data": ending.output, "post_execution_plan": ending.post_execution_plan}
        said["obligations"] = ending.obligations
        said["artifacts"] = [
            {"name": each.name, "media_type": each.media_type, "digest": _sha256(each.content)}
            for each in ending.artifacts
        ]
    if ending.problem is not None:
        said["error"] = {"detail": ending.problem.detail, "details": ending.problem.details}
    return json.loads(json.dumps(said)), ending, outcome


def _marks_of(invocation: Invocation, document: bytes) -> set[str]:
    """The keyed hashes of what a tool returned, as the End facts of the different versions of this hub have them."""
    return {
        fingerprint_under(find_values_key(invocation), document),
        evidence.compute_fingerprint(document, tenant_id=invocation.tenant_id),
    }


def _sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _compared(
    invocation: Invocation, version: ToolVersion, recorded: dict[str, Any], prepared: _PreparedRun, end: End
) -> RerunComparison:
    said, ending, outcome = _once(invocation, version, prepared)
    notes = prepared.notes
    output, ignored = version.view.determinism
    if output == "none":
        notes.append("not_compared")
    elif ignored:
        notes.append("ignored")
    if ending.raw is not NOTHING and end.raw_output is not None:
        same = end.raw_output.commit in _marks_of(invocation, evidence.json_bytes(ending.raw))
        notes.append("raw_same" if same else "raw_other")
    if "data" in said and "data" not in recorded and invocation.output_digest:
        notes.append("digest_only")
        if compute_digest(said["data"]) == invocation.output_digest:
            recorded = said
    found, count = find_differences(
        _to_compare(recorded, output=output, ignored=ignored), _to_compare(said, output=output, ignored=ignored)
    )
    compared = RerunComparison(
        ReplayVerdict.DIFFERS if count else ReplayVerdict.MATCH,
        notes=notes,
        image=outcome.image,
        runs=1,
        state=said["state"],
        problem=said["reason"],
        differences=count,
        values={"recorded": recorded, "replayed": said, "differences": found},
    )
    if count:
        _look_closer(compared, invocation, version, prepared, said, ignored=ignored, output=output)
    return compared


def _look_closer(
    compared: RerunComparison,
    invocation: Invocation,
    version: ToolVersion,
    prepared: _PreparedRun,
    said: dict[str, Any],
    *,
    ignored: Sequence[str],
    output: str,
) -> None:
    """Why does it differ: for want of what the fence took away, because the tool differs each time, or in truth?"""
    failed = said["state"] != State.SUCCEEDED and invocation.state == State.SUCCEEDED
    if failed and prepared.taken:
        compared.verdict, compared.why = ReplayVerdict.CANNOT, prepared.taken[0]
        return
    if "config" in prepared.notes:
        compared.verdict, compared.why = ReplayVerdict.CANNOT, "config"
        return
    first = _to_compare(said, output=output, ignored=ignored)
    for _ in range(RUNS - 1):
        again = _to_compare(_once(invocation, version, prepared)[0], output=output, ignored=ignored)
        compared.runs += 1
        if find_differences(first, again)[1]:
            compared.verdict = ReplayVerdict.NOT_DETERMINISTIC
            return


def _to_compare(said: dict[str, Any], *, output: str, ignored: Sequence[str]) -> dict[str, Any]:
    if "data" not in said:
        return said
    if output == "none":
        return {name: said[name] for name in ("state", "reason")}
    return said | {"data": mask_pointers(said["data"], ignored)}
