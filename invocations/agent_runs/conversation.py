"""Run conversation: what the model is told next, put together from what was asked and what the calls were answered.

Nothing of it is kept a second time: the question is sealed with the run, each answer with its call. So what was redacted from an
answer is not told, and what was erased ends the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evidence.problems import ValuesErased
from invocations.agent_runs.models import AgentRunStepRole
from invocations.answer.envelope import build_answer_envelope
from invocations.calls import AnsweredCall
from invocations.dispatch.services import ResponseCall, build_tool_result
from kernel.http.parsers import make_storable
from kernel.problems import find_problem_class
from llm.messages import MAX_NAME
from registry.problems import UnknownTool
from unitools.calls import CallProblem, Status, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.agent_runs.models import AgentRunStep
    from invocations.models import Invocation

NOTHING = "(The tool has answered with an empty text.)"
SILENT = "(no text)"
NAMELESS = "unnamed"


def read_answer(call: Invocation) -> dict[str, Any]:
    """What the model has answered, as its caller gets it: `text`, `proposals`, `finish_reason` and more."""
    data = build_answer_envelope(call).data
    if not isinstance(data, dict):
        raise ValuesErased()
    return data


def read_proposal(said: dict[str, Any]) -> ToolCall:
    """A call that an answer proposes. Arguments that cannot be used stay unusable, and a name that cannot be kept is no tool's."""
    problem = CallProblem(said["problem"]) if said.get("problem") else None
    id, name = make_storable(said["call_id"]), make_storable(said["name"]) or NAMELESS
    return ToolCall(id, name, said["arguments"], problem=problem, provider_id=id, why=said.get("detail", ""))


def list_proposals(answer: dict[str, Any]) -> list[ToolCall]:
    """In their order. One whose id another has, or that is longer than a conversation takes, has an id of ours."""
    found: list[ToolCall] = []
    taken = {each["call_id"] for each in answer.get("proposals", ())}
    for number, each in enumerate(map(read_proposal, answer.get("proposals", ())), 1):
        is_usable = len(each.id) <= MAX_NAME and each.id not in {other.id for other in found}
        found.append(each if is_usable else replace(each, id=_choose_id(number, taken)))
    return found


def _choose_id(number: int, taken: set[str]) -> str:
    id = f"call_{number}"
    while id in taken:
        id += "_"
    return id


def build_messages(
    asked: list[dict[str, Any]], steps: Sequence[AgentRunStep], calls: dict[Any, Invocation | None]
) -> list[dict[str, Any]]:
    """The conversation so far. ``calls``: the last call of each step, by its id; None where it became none."""
    messages = list(asked)
    proposals: list[ToolCall] = []
    for step in steps:
        call = calls[step.pk]
        if step.role == AgentRunStepRole.MODEL:
            assert call is not None
            answer = read_answer(call)
            proposals = list_proposals(answer)
            messages.append(_build_assistant_message(answer, proposals))
        else:
            messages.append(_build_tool_message(step, call, proposals.pop(0)))
    return messages


def _build_assistant_message(answer: dict[str, Any], proposals: list[ToolCall]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if answer.get("text"):
        message["segments"] = [{"type": "text", "text": answer["text"]}]
    if proposals:
        message["proposals"] = [
            {"call_id": each.id, "name": each.name, "arguments": each.arguments or {}} for each in proposals
        ]
    elif "segments" not in message:
        message["segments"] = [{"type": "text", "text": SILENT}]
    if answer.get("provider_state"):
        message["provider_state"] = answer["provider_state"]
    return message


def _build_tool_message(step: AgentRunStep, call: Invocation | None, proposed: ToolCall) -> dict[str, Any]:
    result = _build_result(step, call, proposed)
    return {
        "role": "tool",
        "call_id": proposed.id,
        "segments": [{"type": "text", "text": result.to_content() or NOTHING}],
        "is_error": result.is_error,
    }


def _build_result(step: AgentRunStep, call: Invocation | None, proposed: ToolCall) -> ToolResult:
    if call is None:
        why = find_problem_class(step.reason).title()
        status = Status.UNKNOWN_TOOL if step.reason == UnknownTool.reason else Status.DENIED
        return ToolResult(status, message=why, code=step.reason, call=proposed)
    made = ResponseCall(proposed, answered=AnsweredCall(call))
    return build_tool_result(made, build_answer_envelope(call))
