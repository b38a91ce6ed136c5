"""End record: how a call ends, whoever ends it.

:func:`end_call` is the one place that writes a final state: the compare-and-set, the End fact, the sealed values and the
attempt, in one transaction. Who loses the compare-and-set writes nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import IntegrityError, transaction

from access.budgets import ledger
from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.base import ListDigest
from evidence.leaves.calls import End, HashedOutput, RunReport, SpentBudget, ToolDigests
from evidence.models import Snapshot, SnapshotKind
from invocations.answer.wake_ups import get_waker
from invocations.artifacts.services import build_sealed_artifacts, keep_artifacts, summarize_artifacts
from invocations.call_outcomes import UNKNOWN_OUTCOMES
from invocations.end.egress_report import (
    EgressReport,
    build_egress_report,
    build_sealed_connections,
    describe_service,
)
from invocations.end.end_files import keep_files_of_call, keep_files_of_tool
from invocations.files.services import KeptFiles
from invocations.metrics.call_metrics import count_call
from invocations.model_calls.model_facts import describe_answered_model
from invocations.models import CALLED_VERSION, LOST, MOVED, Attempt, Invocation, State
from invocations.problems import OutcomeUnknown, find_cut_remedy
from invocations.proposals.proposal_links import hash_proposals
from invocations.signals import call_ended
from invocations.step_log import read_step_result
from invocations.value_keys import find_values_key, is_forgotten, recheck_forgotten
from kernel.canonical import canonicalize, compute_digest
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
    from uuid import UUID

    from django.db.models import Q

    from evidence.leaves import Commitment
    from evidence.leaves.calls import ArtifactSummary, FileChanges, KeptToolFiles
    from evidence.models import SubjectKey
    from invocations.artifacts.description import DescribedArtifact
    from invocations.artifacts.models import Artifact
    from invocations.end.output_repair import Repair
    from invocations.model_calls.model_facts import ModelReport
    from invocations.sandbox.base import RunOutcome, SentFile, TenantFile
    from invocations.tool_files.services import ToolFilesChange

NOTHING = object()
PLAN = "post_execution_plan"
MAX_SOURCES_BYTES = 8 * 1024  # in a fact, which has room for other things too
MAX_CHANGES_BYTES = 2 * 1024  # of obligations, and of repairs
# Of a ruleset, a table, a document.
PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._:/-]{0,79}")
PLAIN = {"type": PLAIN_NAME, "name": PLAIN_NAME, "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")}
KINDS_OF_CAPABILITIES = frozenset({"browser", "cidr", "fs", "net", "proc", "system"})


@dataclass(slots=True)
class Ending:
    """How a call ended. ``output`` is what the caller gets; NOTHING when there is none."""

    state: State
    problem: Problem | None = None
    output: Any = NOTHING
    post_execution_plan: Any = None
    warnings: list[str] = field(default_factory=list)
    ttl_seconds: int | None = None
    sources: list[dict[str, str]] = field(default_factory=list)
    outcome: RunOutcome | None = None
    model: ModelReport | None = None  # of a call of a model that was asked
    obligations: list[dict[str, Any]] = field(default_factory=list)  # what was done to the output: access.redaction
    # What the call leaves for its caller, if it ends well.
    artifacts: list[DescribedArtifact] = field(default_factory=list)
    inputs: tuple[TenantFile, ...] = ()  # the tenant's files that the run was given
    sent_files: tuple[SentFile, ...] = ()  # those that its request to a service was to carry
    repairs: list[Repair] = field(default_factory=list)  # what was done before that, so that it matches its schema
    raw: Any = NOTHING  # the output before any of it; only a keyed hash of it is kept
    unlike_document: bool = (
        False  # a service's answer that does not match the schema of its document, and was passed on
    )
    ran: bool = True  # False when it is certain that the tool did not begin: then the idempotency key is free again
    steps: list[dict[str, Any]] = field(default_factory=list)


def split_plan(output: Any) -> tuple[Any, Any]:
    """A tool's output without its plan, and the plan; None when there is none."""
    if not isinstance(output, dict) or PLAN not in output:
        return output, None
    return {name: each for name, each in output.items() if name != PLAN}, output[PLAN]


def build_caller_principal(invocation: Invocation) -> Principal:
    """The agent that made the call, as the actor of its facts."""
    return Principal(
        kind=ActorKind.AGENT,
        id=encode("agt", invocation.agent_id),
        name="",
        tenant_id=invocation.tenant_id,
        agent_id=invocation.agent_id,
    )


def shorten_sources(
    sources: list[dict[str, str]], key: SubjectKey
) -> tuple[list[dict[str, str]] | None, ListDigest | None]:
    """All of them while they fit; of very many the first, with the number and a hash of all. What a tool calls a source is its own
    word: a name that is none of a ruleset or a table, but an address or a number, say, is only hashed.
    """
    if not sources:
        return None, None
    kept: list[dict[str, str]] = []
    size = 0
    for source in (_hash_free_text(each, key) for each in sources):
        size += len(canonicalize(source)) + 1
        if size > MAX_SOURCES_BYTES:
            whole = fingerprint_under(key, canonicalize(sources))
            return kept, ListDigest(count=len(sources), hash=whole)
        kept.append(source)
    return kept, None


def _hash_free_text(source: dict[str, str], key: SubjectKey) -> dict[str, str]:
    """The plain hash of what is only hashed could be guessed, so it is hashed as well."""
    plain = {name for name, text in source.items() if not text or (name in PLAIN and PLAIN[name].fullmatch(text))}
    if plain >= PLAIN.keys():
        return source
    return {name: text if name in plain else fingerprint_under(key, text.encode()) for name, text in source.items()}


def shorten_changes(changes: list[dict[str, Any]]) -> tuple[list[dict[str, Any]] | None, ListDigest | None]:
    """What was done to the output, as pointers and kinds, never values; of very long lists only their length and digest."""
    if not changes:
        return None, None
    if len(canonicalize(changes)) > MAX_CHANGES_BYTES:
        return None, ListDigest(count=len(changes), hash=compute_digest(changes))
    return changes, None


def build_spent_budget(ending: Ending) -> SpentBudget:
    """What is taken of the budgets that the Begin names; what is not named here counts as it was reserved."""
    spent = compute_spending(ending)
    if spent is None:
        return SpentBudget(spent={}, released=True)
    apart = {encode("bud", budget): took for budget, took in _list_apart(ending).items()}
    return SpentBudget(
        spent=_list_measured(spent),
        not_of=sorted(budget for budget, took in apart.items() if took is ledger.NOTHING) or None,
        parts={budget: _list_measured(took) for budget, took in apart.items() if took is not ledger.NOTHING} or None,
    )


def _list_apart(ending: Ending) -> dict[UUID, ledger.CallUsage]:
    return ending.model.apart if ending.model is not None else {}


def _list_measured(spent: ledger.CallUsage) -> dict[str, int]:
    measured = {
        "bytes_out": spent.bytes_out,
        "cpu_ms": spent.cpu_ms,
        "tokens": spent.tokens,
        "money": spent.money,
    }
    return {name: amount for name, amount in measured.items() if amount is not None}


class SealedEnding(NamedTuple):
    """The commitments to the values of an ending."""

    output: Commitment | None = None
    raw_output: HashedOutput | None = None
    error: Commitment | None = None
    logs: Commitment | None = None


def build_end_leaf(
    invocation: Invocation,
    ending: Ending,
    key: SubjectKey,
    sealed: SealedEnding,
    *,
    artifacts: ArtifactSummary | None,
    files: FileChanges | None,
    tool_files: KeptToolFiles | None,
) -> End:
    """What the End fact says beside its columns."""
    version, outcome = invocation.version, ending.outcome
    sources, all_sources = shorten_sources(ending.sources, key)
    repairs, all_repairs = shorten_changes([repair.to_json() for repair in ending.repairs])
    obligations, all_obligations = shorten_changes(ending.obligations)
    egress = build_egress_report(outcome) if outcome is not None else EgressReport()
    return End(
        state=str(ending.state),
        attempt=invocation.attempt,
        dry_run=invocation.dry_run,
        tool=ToolDigests(
            name=invocation.tool,
            version=version.version,
            manifest=version.manifest_digest,
            build=version.build_digest,
        )
        if version is not None
        else None,
        profile=invocation.profile_hash or None,
        budget=build_spent_budget(ending) if invocation.budget else None,
        run=build_run_report(invocation, outcome) if outcome is not None else None,
        model=describe_answered_model(ending.model, hash_proposals(ending.output, key))
        if ending.model is not None
        else None,
        blocked=list_blocked_kinds(outcome) or None if outcome is not None else None,
        output=sealed.output,
        raw_output=sealed.raw_output,
        error=sealed.error,
        logs=sealed.logs,
        artifacts=artifacts,
        files=files,
        tool_files=tool_files,
        sources=sources,
        all_sources=all_sources,
        repairs=repairs,
        all_repairs=all_repairs,
        obligations=obligations,
        all_obligations=all_obligations,
        connections=egress.connections,
        all_connections=egress.all_connections,
        connections_known=egress.known,
        connections_elsewhere=egress.elsewhere,
        service=describe_service(outcome, unlike_document=ending.unlike_document, sent_files=ending.sent_files)
        if outcome is not None
        else None,
        account=invocation.account_wire_id or None if ending.ran else None,
    )


def build_run_report(invocation: Invocation, outcome: RunOutcome) -> RunReport:
    """How the tool ran."""
    return RunReport(
        status=str(outcome.status),
        image=outcome.image,
        clock=invocation.started_at.isoformat() if invocation.started_at else "",
        box=outcome.box,
        level=outcome.level,
        clean=outcome.clean,
        duration_ms=round(outcome.duration_ms),
        cpu_ms=None if outcome.cpu_ms is None else round(outcome.cpu_ms),
        max_rss_bytes=outcome.max_rss_bytes,
        result_bytes=outcome.result_bytes,
        cpu_exact=None if outcome.cpu_exact else False,
        waited_ms=outcome.waited_ms,
    )


def list_blocked_kinds(outcome: RunOutcome) -> list[str]:
    """Only kinds that we know: what a tool reaches for is its own word and could spell out a value. The rest is sealed."""
    kinds = {each.partition(":")[0] for each in {*outcome.attempts, *([outcome.blocked] if outcome.blocked else [])}}
    return sorted(kinds & KINDS_OF_CAPABILITIES) + (["other"] if kinds - KINDS_OF_CAPABILITIES else [])


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


def compute_spending(ending: Ending) -> ledger.CallUsage | None:
    """None: nothing ran, so nothing is taken. What was never measured counts as reserved."""
    if not ending.ran:
        return None
    outcome, model = ending.outcome, ending.model
    if model is not None:
        return ledger.CallUsage(bytes_out=model.result_bytes, tokens=model.tokens, money=model.money)
    if outcome is None:
        return ledger.CallUsage()
    cpu_ms = None if outcome.cpu_ms is None else math.ceil(outcome.cpu_ms)
    return ledger.CallUsage(bytes_out=outcome.result_bytes, cpu_ms=cpu_ms)


def settle_budgets(invocation: Invocation, ending: Ending) -> None:
    """Count what the call has taken, last in the transaction of its End."""
    spent = compute_spending(ending)
    if spent is None:
        ledger.settle_at_commit(invocation_id=invocation.pk, spent=ledger.NOTHING)
    else:
        ledger.settle_at_commit(invocation_id=invocation.pk, spent=spent, apart=_list_apart(ending))


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
