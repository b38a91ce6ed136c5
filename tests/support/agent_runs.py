"""Agent runs: how do tests begin agent runs, take them on without a thread, and read what became of them?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from invocations.agent_runs import orchestration
from invocations.agent_runs.models import AgentRun
from invocations.model_calls.model_runs import prepare_run
from invocations.models import Invocation
from kernel.ids import decode
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.usage import Usage
from tests.support.model_calls import say

if TYPE_CHECKING:
    from invocations.calls import BegunCall
    from tests.conftest import Caller
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"


def propose(*texts: str, tool: str = ECHO) -> tuple[ChatDelta, ...]:
    """An answer that proposes a call of the tool with each of these texts."""
    calls = [
        ChatDelta(tool_call=ToolCallDelta(n, f"call_{n}", tool, json.dumps({"text": text})), model="script-001")
        for n, text in enumerate(texts)
    ]
    return (*calls, ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(10, 5)))


def submit(caller: Caller, *, headers: dict[str, str] | None = None, **body: Any) -> Any:
    """``arguments`` and ``limits`` are the run's; the rest goes into the envelope."""
    said = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "model": "model.script.main"}
    said |= {"arguments": say("Which?", tools=[ECHO])}
    return caller.post("/runs", said | body, **(headers or {}))


def run_of(answer: Any) -> AgentRun:
    assert answer.status_code in (200, 202), answer.json()
    return AgentRun.objects.get(pk=decode("run", answer.json()["data"]["run_id"]))


def list_steps(run: AgentRun) -> list[tuple[int, str, str]]:
    return [(step.turn, str(step.role), str(step.state)) for step in run.steps.order_by("position")]


def list_calls(run: AgentRun) -> list[Invocation]:
    """In the order of their steps, and of their tries."""
    return list(Invocation.objects.filter(run_step__run=run).order_by("run_step__position", "id"))


class RunDriver:
    """Stands in for the event loop and the workers: what was begun is done when the test says so, in its thread."""

    def __init__(self, bell: Bell) -> None:
        self.bell, self.begun = bell, list[Any]()

    def start(self, begun: BegunCall) -> None:
        self.begun.append(begun)

    def ask_models(self) -> None:
        while self.begun:
            if (run := prepare_run(self.begun.pop(0), wants_stream=False)) is not None:
                run.run_here()

    def drive(self, *, most: int = 100) -> None:
        """Until nothing is left to do."""
        for _ in range(most):
            self.ask_models()
            self.bell.deliver()
            if not self.begun and not self.bell.rung:
                return
        raise AssertionError("The run goes on for ever.")

    def look(self) -> None:
        """What the loop of a worker does."""
        for run_id in orchestration.find_due_runs():
            orchestration.continue_run(run_id)
