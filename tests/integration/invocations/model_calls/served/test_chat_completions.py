"""Chat completions: do programs that speak OpenAI's Chat Completions get answers of the hub's models, by the hub's rules?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.models import Invocation
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.problems import ProviderQuotaExhausted, StreamTruncated
from llm.usage import Usage
from tests.support.calls import PAIR, kinds_of
from tests.support.served_formats import CHAT, DONE, MODEL, TOOL, build_chat, build_function, parse_chunks, read_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
WIRE_NAME = "sample_tools_echo"


def propose(*calls: tuple[str, str]) -> tuple[ChatDelta, ...]:
    """The script of an answer that proposes calls of tools with arguments."""
    pieces = [
        ChatDelta(tool_call=ToolCallDelta(place, f"call_{place}", name, arguments), model="script-001")
        for place, (name, arguments) in enumerate(calls)
    ]
    return (*pieces, ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(7, 3)))


def ask(caller: Caller, body: Any = None, **headers: str) -> Any:
    return caller.ask(CHAT, build_chat() if body is None else body, **headers)


@pytest.mark.req("LLM-1", "TOOLS-18")
def test_a_question_is_answered_as_the_format_has_it_and_the_call_has_its_pair(caller: Caller, model: Tool) -> None:
    answer = ask(caller)

    call, said = Invocation.objects.get(), answer.json()
    assert answer.status_code == 200
    assert answer.headers["X-Hub-Call"] == call.wire_id == said["id"].removeprefix("chatcmpl-")
    assert said["object"] == "chat.completion"
    assert said["model"] == MODEL
    (choice,) = said["choices"]
    assert (choice["message"]["role"], choice["message"]["content"]) == ("assistant", "Hi there")
    assert choice["finish_reason"] == "stop"
    assert said["usage"]["total_tokens"] == said["usage"]["prompt_tokens"] + said["usage"]["completion_tokens"] == 12
    assert said["hub"]["answered_by"] == "script-001"
    assert kinds_of(call) == PAIR


@pytest.mark.req("LLM-5")
def test_a_stream_ends_with_its_reason_and_the_mark_of_a_good_end(caller: Caller, model: Tool) -> None:
    answer = ask(caller, build_chat(stream=True, stream_options={"include_usage": True}))

    *chunks, usage, done = parse_chunks(answer.content.decode())
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert "".join(each["choices"][0]["delta"].get("content", "") for each in chunks) == "Hi there"
    assert [each["choices"][0]["finish_reason"] for each in chunks] == [None, "stop"]
    assert (usage["choices"], usage["usage"]["prompt_tokens"], done) == ([], 10, DONE)
    assert {each["id"].removeprefix("chatcmpl-") for each in chunks} == {Invocation.objects.get().wire_id}


@pytest.mark.req("LLM-5", "LLM-7")
def test_usage_is_told_in_a_stream_only_to_whom_asks_for_it(caller: Caller, model: Tool) -> None:
    chunks = parse_chunks(ask(caller, build_chat(stream=True)).content.decode())

    assert chunks[-1] == DONE
    assert not any("usage" in each for each in chunks[:-1])


@pytest.mark.req("LLM-3")
def test_a_body_by_the_name_of_a_tool_shows_the_registrys_and_proposals_come_back_under_that_name(
    caller: Caller, model: Tool, bench: ProviderBench, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    bench.scripts = [propose((TOOL, '{"text": "a"}'), (TOOL, '{"text": "b"}'))]

    said = ask(caller, build_chat(tools=[build_function(WIRE_NAME)])).json()

    (shown,) = bench.requests[0].tools
    assert (shown.name, "text" in shown.parameters["properties"]) == (TOOL, True)
    assert "Whatever the caller says." not in shown.description
    (choice,) = said["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert [
        (each["id"], each["type"], each["function"]["name"], each["function"]["arguments"])
        for each in choice["message"]["tool_calls"]
    ] == [("call_0", "function", WIRE_NAME, '{"text": "a"}'), ("call_1", "function", WIRE_NAME, '{"text": "b"}')]


@pytest.mark.req("LLM-3")
def test_parallel_calls_of_the_history_reach_the_model_under_the_ids_of_their_tools(
    caller: Caller, model: Tool, bench: ProviderBench, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    calls = [
        {"id": f"call_{each}", "type": "function", "function": {"name": WIRE_NAME, "arguments": '{"text": "x"}'}}
        for each in "ab"
    ]
    history = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Both, please."}]},
        {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_a", "content": "one"},
        {"role": "tool", "tool_call_id": "call_b", "content": ""},
    ]

    answer = ask(caller, {"model": MODEL, "messages": history, "tools": [build_function(WIRE_NAME)]})

    assert answer.status_code == 200, answer.content
    system, _, assistant, first, second = bench.requests[0].messages
    assert system.role == "system"
    assert [(each.name, each.arguments) for each in assistant.proposals] == [(TOOL, {"text": "x"})] * 2
    assert [each.call_id for each in (first, second)] == ["call_a", "call_b"]


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_foreign_tool_is_refused_with_its_pair_unless_the_model_was_connected_for_it(
    caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    grant("model.*")
    connect()
    connect(alias="open", caller_tools="allow")
    body = build_chat(tools=[build_function("final_result")])

    refused, shown = ask(caller, body), ask(caller, body | {"model": "open"})

    assert read_error(refused) == (400, "LLM.FOREIGN_TOOL", "LLM.FOREIGN_TOOL")
    assert kinds_of(Invocation.objects.get(tool=MODEL)) == PAIR
    assert shown.status_code == 200, shown.content
    (tool,) = bench.requests[0].tools
    assert tool.name == "final_result"
    begin = Fact.objects.get(invocation_id=Invocation.objects.get(tool="model.script.open").pk, kind=PAIR[0])
    assert '"own_tools":1' in begin.text


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_first_word_has_a_status_of_its_own_also_in_a_stream(
    stream: bool, caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [(ProviderQuotaExhausted(),)]

    answer = ask(caller, build_chat(stream=stream))

    assert read_error(answer) == (429, "insufficient_quota", "PROVIDER.QUOTA_EXHAUSTED")
    assert answer.headers["X-Hub-Call"] == Invocation.objects.get().wire_id
    assert answer.headers["X-Should-Retry"] == "false"


@pytest.mark.req("LLM-5")
def test_an_answer_of_which_nobody_knows_that_it_is_whole_does_not_say_that_it_stopped(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [(ChatDelta(text="Hm"), ChatDelta(finish_reason=FinishReason.OTHER))]

    said = ask(caller).json()

    assert (said["choices"][0]["finish_reason"], said["hub"]["finish_reason"]) == ("length", "other")


@pytest.mark.req("LLM-5", "LLM-9")
def test_a_provider_that_breaks_off_is_no_answer(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [(ChatDelta(text="Hm"), StreamTruncated())] * 10

    assert read_error(ask(caller))[::2] == (502, "PROVIDER.STREAM_TRUNCATED")
