"""Odd proposals: does a run go on whatever a model calls a tool or its own calls, with names that no database or conversation
takes?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.usage import Usage
from tests.support.agent_runs import ECHO, list_calls, run_of, submit
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller
    from tests.support.agent_runs import RunDriver
    from tests.support.calls import ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)


def propose_as(*ids: str, name: str = ECHO, arguments: str = '{"text": "a"}') -> tuple[ChatDelta, ...]:
    calls = [ChatDelta(tool_call=ToolCallDelta(n, id, name, arguments)) for n, id in enumerate(ids)]
    return (*calls, ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(10, 5)))


@pytest.mark.req("RUN-1", "TOOLS-30")
@pytest.mark.parametrize(
    "name", ["na\0me", "na\ud83dme", f"{ECHO}\0", "", "x" * 500, "naïve.tools.x", "\r\nevent: end"]
)
def test_a_name_that_is_no_tools_is_told_the_model_and_the_run_goes_on(
    name: str,
    caller: Caller,
    grant: Callable[..., object],
    bench: ProviderBench,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
) -> None:
    grant()
    bench.scripts = [propose_as("call_0", name=name), text_answer("Well")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    told = bench.requests[1].messages[-1]
    assert (told.is_error, json.loads(told.segments[0].text)["code"]) == (True, "TOOL.UNKNOWN")
    assert sandbox.calls == []


@pytest.mark.req("LLM-3", "TOOLS-30")
@pytest.mark.parametrize("ids", [["c\0"], ["c\ud83d"], ["c" * 600], [""], ["", "call_1"], ["call_2", ""]])
def test_calls_are_made_whatever_the_model_calls_them(
    ids: list[str], caller: Caller, grant: Callable[..., object], bench: ProviderBench, driver: RunDriver
) -> None:
    grant()
    bench.scripts = [propose_as(*ids), text_answer("Well")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    asked, *made, _ = list_calls(run)
    assert [(call.state, call.proposed_by_id) for call in made] == [("succeeded", asked.pk)] * len(ids)
    told = bench.requests[1].messages[-len(ids) :]
    assert len({each.call_id for each in told}) == len(ids)


@pytest.mark.req("TOOLS-30")
def test_of_two_calls_with_one_id_the_second_is_not_made_and_the_model_learns_why(
    caller: Caller, grant: Callable[..., object], bench: ProviderBench, driver: RunDriver, sandbox: ScriptedSandbox
) -> None:
    grant()
    bench.scripts = [propose_as("c", "c", "call_2"), text_answer("Well")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    first, second, third = bench.requests[1].messages[-3:]
    assert [each.is_error for each in (first, second, third)] == [False, True, False]
    assert json.loads(second.segments[0].text)["code"] == "TOOL.CALL_ID_TWICE"
    assert len(sandbox.calls) == 2


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("arguments", ['{"text": "\\u0000"}', '{"text": "\\ud83d"}', '{"text": "\ud83d"}'])
def test_arguments_that_cannot_be_kept_are_never_changed_and_used(
    arguments: str,
    caller: Caller,
    grant: Callable[..., object],
    bench: ProviderBench,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
) -> None:
    grant()
    bench.scripts = [propose_as("c", arguments=arguments), text_answer("Well")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert run.state == "succeeded"
    assert json.loads(bench.requests[1].messages[-1].segments[0].text)["code"] == "TOOL.ARGS_UNUSABLE"
    assert sandbox.calls == []


@pytest.mark.req("RUN-1")
def test_an_answer_with_half_a_character_is_told_with_a_mark_in_its_place(
    caller: Caller, grant: Callable[..., object], bench: ProviderBench, driver: RunDriver
) -> None:
    grant()
    end = ChatDelta(finish_reason=FinishReason.STOP, usage=Usage(10, 5))
    bench.scripts = [(ChatDelta(text="Well \ud83d"), ChatDelta(text="\0!"), end)]
    run = run_of(submit(caller))
    driver.drive()

    assert caller.get(f"/runs/{run.wire_id}").json()["data"]["answer"]["text"] == "Well \ufffd\ufffd!"
