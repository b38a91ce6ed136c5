"""Agent run answers: what its agent gets to see of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evidence.models import Snapshot, SnapshotKind
from evidence.services import reveal_values
from invocations.agent_runs.conversation import read_answer
from invocations.agent_runs.models import AgentRun, AgentRunState, AgentRunStep, AgentRunStepRole
from invocations.agent_runs.problems import RunStopped
from invocations.agent_runs.services import sum_cost
from invocations.answer.envelope import collect_sources
from invocations.models import Invocation, State
from kernel.http.envelopes import ResponseEnvelope
from kernel.observability.telemetry import read_trace_id
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.http.envelopes import EvidenceSource
    from kernel.principal import Principal

READ_OWN_ANSWER = "The agent reads the answer of its own run."


class RunSource(NamedTuple):
    """Something that an answer rests on, and the call that was answered from it."""

    call: Invocation
    source: EvidenceSource


class RevealedRun(NamedTuple):
    """The model's last answer, and (call, value) of the tools; None for what is erased, or kept no longer."""

    answer: dict[str, Any] | None
    tools: list[tuple[Invocation, dict[str, Any] | None]]


def group_calls_by_step(run: AgentRun) -> dict[UUID, list[Invocation]]:
    """The calls of each step, in the order in which they were made."""
    found: dict[UUID, list[Invocation]] = {}
    for call in Invocation.objects.filter(run_step__run=run).select_related("version__tool").order_by("id"):
        assert call.run_step_id is not None
        found.setdefault(call.run_step_id, []).append(call)
    return found


def describe_step(step: AgentRunStep, calls: list[Invocation]) -> dict[str, Any]:
    call = calls[-1] if calls else None
    waits = step.state == "running" and call is not None and call.state == State.HELD
    return {
        "turn": step.turn,
        "role": step.role,
        "tool": step.tool,
        "state": "held" if waits else step.state,
        "tries": step.tries,
        "reason": step.reason or None,
        "cost_micros": None if step.unpriced else step.cost_micros,
        "call": {"call_id": call.wire_id, "url": f"/api/v1/invocations/{call.wire_id}"} if call is not None else None,
    }


def find_last_answered_call(steps: list[AgentRunStep], calls: dict[UUID, list[Invocation]]) -> Invocation | None:
    """The call of the model that has answered last."""
    for step in reversed(steps):
        call = calls[step.pk][-1] if calls.get(step.pk) else None
        if step.role == AgentRunStepRole.MODEL and call is not None and call.state == State.SUCCEEDED:
            return call
    return None


def find_last_answer(
    steps: list[AgentRunStep], calls: dict[UUID, list[Invocation]], *, by: Principal | None = None
) -> dict[str, Any] | None:
    """What the model has answered last. That its agent reads it is a fact of its own (``by``)."""
    call = find_last_answered_call(steps, calls)
    if call is None:
        return None
    snapshot = Snapshot.objects.filter(invocation_id=call.pk, kind=SnapshotKind.OUTPUT).first()
    if snapshot is None:
        return None  # what was said has been erased
    if by is not None:
        reveal_values(snapshot=snapshot, reason=READ_OWN_ANSWER, by=by)
    answer = read_answer(call)
    return {name: answer[name] for name in ("text", "output", "finish_reason", "model") if name in answer}


def list_answered_tool_calls(steps: list[AgentRunStep], calls: dict[UUID, list[Invocation]]) -> list[Invocation]:
    """The calls of tools that the model was told the results of, whether or not these are still kept."""
    made = [calls[step.pk][-1] for step in steps if step.role == AgentRunStepRole.TOOL and calls.get(step.pk)]
    return [call for call in made if call.state == State.SUCCEEDED]


def list_sources(tool_calls: Sequence[Invocation]) -> list[RunSource]:
    """What the calls of tools have answered from, each with its call: the model was told nothing else."""
    return [RunSource(call, source) for call in tool_calls for source in collect_sources(call)]


def _filter_outputs(calls: Sequence[Invocation]) -> QuerySet[Snapshot]:
    return Snapshot.objects.filter(invocation_id__in=[call.pk for call in calls], kind=SnapshotKind.OUTPUT)


def has_stored_answers(calls: Sequence[Invocation]) -> bool:
    return _filter_outputs(calls).exists()


def reveal_run_values(
    answered: Invocation, tool_calls: Sequence[Invocation], *, reason: str, by: Principal
) -> RevealedRun:
    """What the model has answered last, and what the tools have. Each value that is opened is a fact of its own."""
    stored = _filter_outputs([answered, *tool_calls])
    opened = {row.invocation_id: reveal_values(snapshot=row, reason=reason, by=by) for row in stored}
    answer = opened.get(answered.pk, {}).get("data")
    return RevealedRun(
        answer if isinstance(answer, dict) else None, [(call, opened.get(call.pk)) for call in tool_calls]
    )


def build_run_problem(run: AgentRun) -> RunStopped | None:
    """Why it has come to no answer; None where it has, or goes on."""
    if not run.is_final or run.state == AgentRunState.SUCCEEDED:
        return None
    because = f" {find_problem_class(run.reason).title()}" if run.reason else ""
    return RunStopped(
        f"The run ended with `{run.stop_reason}`.{because}",
        details={"stop_reason": run.stop_reason, "reason": run.reason or None},
    )


def build_run_answer(run: AgentRun, *, by: Principal) -> ResponseEnvelope:
    steps, calls, cost = list(run.steps.order_by("position")), group_calls_by_step(run), sum_cost(run)
    data = {
        "run_id": run.wire_id,
        "state": run.state,
        "stop_reason": run.stop_reason or None,
        "waits_for_a_person": any(call.state == State.HELD for each in calls.values() for call in each),
        "cancel_asked": run.cancel_asked_at is not None,
        "model": run.model,
        "limits": run.limits,
        "cost_micros": cost.micros,
        "unpriced_calls": cost.unpriced,
        "request_id": run.request_id,
        "steps": [describe_step(step, calls.get(step.pk, [])) for step in steps],
        "answer": find_last_answer(steps, calls, by=by) if run.is_final else None,
        "trace_id": read_trace_id(run.trace) or None,
        "created_at": run.created_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
    }
    return ResponseEnvelope(data=data, error=build_run_problem(run))
