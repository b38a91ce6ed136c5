"""Agent loop: does a program without a hub get from a question over its tools to an answer, and do the limits hold?"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from llm.agent_loop import AgentLimits, AgentStop
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.messages import Text, UserMessage
from llm.problems import ProviderUnavailable
from llm.usage import Usage
from tests.support.scripted_models import ScriptedChat, text_answer
from unitools import Universe

ASKED = [UserMessage((Text("What is 2 + 3?"),))]
u = Universe("acme.sums", version="1.0.0")


@u.tool(tags=["sums"])
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@u.tool()
async def wait_for_ever() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return ""


def propose(*calls: tuple[str, dict[str, Any]]) -> tuple[ChatDelta, ...]:
    deltas = [
        ChatDelta(tool_call=ToolCallDelta(n, f"call_{n}", name, json.dumps(arguments)), model="script-001")
        for n, (name, arguments) in enumerate(calls)
    ]
    return (*deltas, ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(10, 5)))


def run(*scripts: Any, **options: Any) -> tuple[Any, ScriptedChat]:
    model = ScriptedChat(scripts)
    return asyncio.run(u.run(model, ASKED, **options)), model


@pytest.mark.req("LLM-3")
def test_a_question_goes_over_the_tools_to_its_answer() -> None:
    answer, model = run(propose(("add", {"a": 2, "b": 3})), text_answer("It is 5."), max_tokens=50)

    assert (answer.stop, answer.text, answer.steps) == (AgentStop.FINISHED, "It is 5.", 2)
    assert [message.role for message in answer.messages] == ["user", "assistant", "tool", "assistant"]
    assert answer.messages[2].segments[0].text == "5"
    assert (answer.usage.input_tokens, answer.usage.requests) == (20, 2)
    assert {request.max_tokens for request in model.requests} == {50}
    assert [tool.name for tool in model.requests[0].tools] == ["add", "wait_for_ever"]


@pytest.mark.req("LLM-3")
def test_a_model_is_shown_and_may_call_only_the_tools_that_are_named() -> None:
    answer, model = run(propose(("wait_for_ever", {})), text_answer("Well."), tools="sums")

    assert [tool.name for tool in model.requests[0].tools] == ["add"]
    assert answer.messages[2].is_error


@pytest.mark.req("LLM-3")
def test_an_error_of_a_tool_is_told_the_model_and_one_of_the_model_is_raised() -> None:
    answer, _ = run(propose(("add", {"a": "x", "b": 3})), text_answer("Sorry."))
    assert answer.messages[2].is_error
    assert answer.stop is AgentStop.FINISHED

    with pytest.raises(ProviderUnavailable):
        run((ProviderUnavailable(),))


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("scripts", "limits", "stop"),
    [
        ([propose(("add", {"a": 1, "b": n})) for n in range(5)], AgentLimits(steps=2), AgentStop.STEPS),
        ([propose(("add", {"a": 1, "b": 1}))] * 5, AgentLimits(equal_calls=2), AgentStop.EQUAL_CALLS),
        ([propose(("wait_for_ever", {}))], AgentLimits(seconds=0.01), AgentStop.SECONDS),
        ([text_answer("cut", FinishReason.LENGTH)], AgentLimits(), AgentStop.LENGTH),
        ([text_answer("no", FinishReason.SAFETY)], AgentLimits(), AgentStop.SAFETY),
    ],
)
def test_each_limit_stops_the_loop_and_the_conversation_can_go_on(
    scripts: list[Any], limits: AgentLimits, stop: AgentStop
) -> None:
    answer, _ = run(*scripts, limits=limits)

    assert answer.stop is stop
    again = asyncio.run(u.run(ScriptedChat([text_answer("On.")]), answer.messages))
    assert again.text == "On."
