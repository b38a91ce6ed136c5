"""End record: how a call ends, whoever ends it.

:func:`end_call` is the one place that writes a final state: the compare-and-set, the End fact, the sealed values and the
attempt, in one transaction. Who loses the compare-and-set writes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.call_ends import HashedOutput
from evidence.models import Snapshot, SnapshotKind
from invocations.answer.wake_ups import get_waker
from invocations.artifacts.services import build_sealed_artifacts, keep_artifacts, summarize_artifacts
from invocations.call_outcomes import UNKNOWN_OUTCOMES
from invocations.end.egress_report import build_sealed_connections
from invocations.end.end_files import keep_files_of_call, keep_files_of_tool
from invocations.end.end_leaf import SealedEnding, build_end_leaf
from invocations.end.endings import NOTHING, Ending
from invocations.end.spent_budgets import settle_budgets
from invocations.files.services import KeptFiles
from invocations.metrics.call_metrics import count_call
from invocations.models import CALLED_VERSION, LOST, MOVED, Attempt, Invocation, State
from invocations.problems import OutcomeUnknown, find_cut_remedy
from invocations.signals import call_ended
from invocations.step_log import read_step_result
from invocations.value_keys import find_values_key, is_forgotten, recheck_forgotten
from kernel.canonical import compute_digest
from kernel.database.connections import share_commit
from kernel.database.postgresql.expectations import UnmetExpectation
from kernel.database.rows import delete_rows_later, update_rows_later
from kernel.fault_injection import inject_fault
from kernel.ids import encode
from kernel.observability.telemetry import read_trace_id
from kernel.principal import ActorKind, Principal
from kernel.problems import Problem, find_problem_class
from registry.tools.deprecation import deprecation_warnings, find_retirement
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from django.db.models import Q

    from invocations.artifacts.models import Artifact
    from invocations.sandbox.base import RunOutcome
    from invocations.tool_files.services import ToolFilesChange


def build_caller_principal(invocation: Invocation) -> Principal:
    """The agent that made the call, as the actor of its facts."""
    return Principal(
        kind=ActorKind.AGENT,
        id=encode("agt", invocation.agent_id),
        name="",
        tenant_id=invocation.tenant_id,
        agent_id=invocation.agent_id,
    )


def _has_output(outcome: RunOutcome) -> bool:
    return any(
        (
            *(outcome.stdout, outcome.stderr, outcome.error_message, outcome.attempts),
            *(outcome.files, outcome.gone, outcome.skipped, outcome.connections),
        )
    )


def collect_notices(invocation: Invocation) -> list[str]:
    """What the hub adds to a tool's own warnings. Kept with the answer, so that a repeated call is answered byte for byte."""
    version = invocation.version
    if version is None:
        return []
    return deprecation_warnings(find_retirement(version.tool), compiled_version(version.pk).manifest)


def seal_ending(
    invocation: Invocation,
    ending: Ending,
    kept: KeptFiles,
    artifacts: list[Artifact],
    tool_files: ToolFilesChange | None = None,
) -> SealedEnding:
    """Store the values of an ending; returns their commitments for the End fact."""
    key = find_values_key(invocation)
    place: dict[str, Any] = {"tenant_id": invocation.tenant_id, "invocation_id": invocation.pk, "key": key}
    output = raw_output = error = logs = None
    notices = collect_notices(invocation)
    if ending.output is not NOTHING:
        value = {
            "data": ending.output,
            "post_execution_plan": ending.post_execution_plan,
            "warnings": [*ending.warnings, *notices],
            "obligations": ending.obligations,
            "artifacts": build_sealed_artifacts(artifacts, ending.artifacts) if artifacts else [],
        }
        output = evidence.seal_values(**place, kind=SnapshotKind.OUTPUT, value=value).to_commitment()
    if ending.raw is not NOTHING:
        document = evidence.json_bytes(ending.raw)
        raw_output = HashedOutput(commit=fingerprint_under(key, document), bytes=len(document))
    if ending.problem is not None:
        problem = ending.problem
        value = {
            "detail": problem.detail,
            "details": problem.details,
            "remedy": problem.remedy,
            "retry_after": problem.retry_after,
            "warnings": notices,
        }
        error = evidence.seal_values(**place, kind=SnapshotKind.ERROR, value=value).to_commitment()
    outcome = ending.outcome
    if outcome is not None and _has_output(outcome):
        value = {
            "stdout": outcome.stdout,
            "stderr": outcome.stderr,
            "error_type": outcome.error_type,
            "error_message": outcome.error_message,
            "attempts": list(outcome.attempts),
        }
        if outcome.files or outcome.gone or outcome.skipped:
            value["files"] = kept.sealed() if tool_files is None else tool_files.seal(outcome)
        if outcome.connections:
            value["connections"] = build_sealed_connections(outcome.connections)
        logs = evidence.seal_values(**place, kind=SnapshotKind.LOGS, value=value).to_commitment()
    return SealedEnding(output, raw_output, error, logs)


def read_version(invocation: Invocation) -> None:
    """The version as it is by now, with its tool, where whoever ends the call has only its id: asked for once and prepared."""
    if invocation.version_id is not None and not Invocation.version.is_cached(invocation):
        invocation.version = CALLED_VERSION.get(pk=invocation.version_id)


def write_end(invocation: Invocation, ending: Ending, *, actor: Principal, at: datetime) -> None:
    """The files, the sealed values and the End fact, in the transaction of the caller."""
    read_version(invocation)
    kept_by_tool = keep_files_of_tool(invocation, ending)
    kept = keep_files_of_call(invocation, ending) if kept_by_tool is None else KeptFiles()
    keeps = ending.state == State.SUCCEEDED and not is_forgotten(invocation)
    artifacts = keep_artifacts(invocation, ending.artifacts) if keeps else []
    sealed = seal_ending(invocation, ending, kept, artifacts, kept_by_tool)
    evidence.record(
        kind=Kind.DRY_RUN_ENDED if invocation.dry_run else Kind.INVOCATION_ENDED,
        subject=invocation.wire_id,
        actor=actor,
        invocation_id=invocation.pk,
        tool=invocation.tool,
        outcome=str(ending.state),
        reason=ending.problem.reason if ending.problem else "",
        trace_id=read_trace_id(invocation.trace),
        at=at,
        data=build_end_leaf(
            invocation,
            ending,
            find_values_key(invocation),
            sealed,
            artifacts=summarize_artifacts(artifacts),
            files=kept.describe_changes(),
            tool_files=kept_by_tool.describe() if kept_by_tool is not None else None,
        ),
    )
    duration_s = (at - invocation.created_at).total_seconds()
    transaction.on_commit(partial(count_call, invocation, ending, duration_s))


def end_call(invocation: Invocation, ending: Ending, *, actor: Principal, attempt: int, only: Q | None = None) -> bool:
    """End a call that has begun. False when somebody else ended it first; then nothing is written.

    ``attempt`` is the fencing token: the run that is ended, 0 for a call that no worker has claimed. ``only`` narrows it
    further, to what the caller has seen and decided on. Who is forgotten at this moment leaves nothing.
    """
    try:
        try:
            return _end_call(invocation, ending, actor=actor, attempt=attempt, only=only)
        except IntegrityError:
            if not recheck_forgotten(invocation):
                raise
            return _end_call(invocation, ending, actor=actor, attempt=attempt, only=only)
    except UnmetExpectation as unmet:
        if unmet.expected != MOVED:
            raise
        return False


def was_left_unknown(invocation: Invocation) -> bool:
    """Whether an earlier run of it was cut off of which nobody knows what it did. Of those whose request never left, that is known."""
    return invocation.was_lost and Attempt.objects.filter(invocation_id=invocation.pk, status=LOST).exists()


def _end_call(invocation: Invocation, ending: Ending, *, actor: Principal, attempt: int, only: Q | None) -> bool:
    now = datetime.now(UTC)
    if not ending.ran and was_left_unknown(invocation):  # it did not run this time; nobody knows what it did before
        problem = OutcomeUnknown(remedy=find_cut_remedy(invocation.version))
        ending = Ending(state=State.OUTCOME_UNKNOWN, problem=problem, steps=ending.steps)
    reason = ending.problem.reason if ending.problem else ""
    if ending.state == State.OUTCOME_UNKNOWN and reason not in UNKNOWN_OUTCOMES:
        raise ValueError(f"A call whose outcome is unknown would not be found by its reason, {reason!r}.")
    with transaction.atomic():
        share_commit()
        won = Invocation.objects.move(
            invocation.pk,
            to=ending.state,
            attempt=attempt,
            only=only,
            later=only is None,
            finished_at=now,
            lease_until=None,
            progress=None,
            reason=reason,
            ttl_seconds=ending.ttl_seconds,
            sources=[] if is_forgotten(invocation) else ending.sources,
            output_digest="" if ending.output is NOTHING or is_forgotten(invocation) else compute_digest(ending.output),
            steps=[*invocation.steps, *ending.steps],
            output_valid=read_step_result(ending.steps, "output.validate"),
            **({} if ending.ran else {"idempotency_key": ""}),
        )
        if not won:
            return False
        outcome = ending.outcome
        if invocation.attempt:
            delete_rows_later(Snapshot, {"invocation_id": invocation.pk, "kind": SnapshotKind.LIVE})
            update_rows_later(
                Attempt,
                {"invocation": invocation.pk, "number": invocation.attempt, "finished_at": None},
                {
                    "finished_at": now,
                    "status": str(outcome.status) if outcome else str(ending.state),
                    "box": outcome.box[:64] if outcome else "",
                    "image": outcome.image[:80] if outcome else "",
                    "cpu_ms": outcome.cpu_ms if outcome else None,
                    "max_rss_bytes": outcome.max_rss_bytes if outcome else None,
                },
            )
        write_end(invocation, ending, actor=actor, at=now)
        call_ended.send(sender=Invocation, invocation=invocation, ending=ending)
        settle_budgets(invocation, ending)
        inject_fault("finish.before_commit")
        transaction.on_commit(partial(inject_fault, "finish.committed"))
        transaction.on_commit(partial(get_waker().wake, invocation.pk))
    return True


def restore_problem(invocation: Invocation, sealed: dict[str, Any]) -> Problem:
    """The problem that ended a call, as it was answered the first time."""
    cls = find_problem_class(invocation.reason)
    return cls(
        sealed.get("detail", ""),
        details=sealed.get("details", {}),
        remedy=sealed.get("remedy", ""),
        retry_after_s=sealed.get("retry_after"),
    )
