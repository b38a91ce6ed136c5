"""Provider sdks: do the SDKs of Anthropic and OpenAI work with a hub in their provider's place?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from invocations.models import Invocation
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.messages import AssistantMessage, ToolMessage
from llm.problems import ProviderRateLimited, ProviderUnavailable, StreamTruncated
from llm.usage import Usage
from registry.models import ModelProvider
from tests.support.calls import PAIR, kinds_of
from tests.support.mcp_clients import web_server
from tests.support.scripted_models import text_answer
from tests.support.served_formats import MODEL, TOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)

WIRE_NAME = "sample_tools_echo"
HI: Any = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
PROPOSED = (
    ChatDelta(text="Let me see.", model="script-001"),
    ChatDelta(tool_call=ToolCallDelta(0, "call_0", TOOL, '{"text": "a"}')),
    ChatDelta(tool_call=ToolCallDelta(1, "call_1", TOOL, '{"text": "b"}')),
    ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(7, 3)),
)


@pytest.fixture
def hub() -> Iterator[str]:
    with web_server() as url:
        yield url


@pytest.fixture
def claude(hub: str, caller: Caller) -> Iterator[anthropic.Anthropic]:
    """It sends the hub's key as its own: in X-Api-Key."""
    with anthropic.Anthropic(api_key=caller.key, base_url=hub, max_retries=0) as client:
        yield client


@pytest.fixture
def gpt(hub: str, caller: Caller) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=caller.key, base_url=f"{hub}/v1", max_retries=0) as client:
        yield client


@pytest.fixture
def tools(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable()
    grant()


@pytest.mark.req("LLM-1", "LLM-5")
def test_anthropics_sdk_gets_an_answer_whole_and_streamed(claude: anthropic.Anthropic, model: Tool) -> None:
    whole = claude.messages.create(model=MODEL, max_tokens=50, messages=HI)
    with claude.messages.stream(model="main", max_tokens=50, messages=HI) as stream:
        texts = "".join(stream.text_stream)
        streamed = stream.get_final_message()

    assert (whole.stop_reason, whole.model) == (streamed.stop_reason, streamed.model) == ("end_turn", MODEL)
    assert [each.text for each in whole.content if each.type == "text"] == [texts] == ["Hi there"]
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (10, 2)
    assert streamed.usage == whole.usage
    assert [kinds_of(call) for call in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-1", "LLM-5")
def test_openais_sdk_gets_a_response_whole_and_streamed(gpt: openai.OpenAI, model: Tool) -> None:
    whole = gpt.responses.create(model=MODEL, input="Hi", metadata={"run": "7"})
    with gpt.responses.stream(model="main", input="Hi") as stream:
        deltas = [each.delta for each in stream if each.type == "response.output_text.delta"]
        streamed = stream.get_final_response()

    assert (whole.output_text, streamed.output_text, "".join(deltas)) == ("Hi there",) * 3
    assert (whole.status, whole.metadata, whole.to_dict()["store"]) == ("completed", {"run": "7"}, False)
    assert streamed.usage == whole.usage
    assert [kinds_of(call) for call in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize("streamed", [False, True])
def test_anthropics_sdk_answers_proposals_and_goes_on(
    claude: anthropic.Anthropic, model: Tool, tools: None, bench: ProviderBench, streamed: bool
) -> None:
    bench.scripts = [PROPOSED, text_answer("Done")]
    asked: Any = {
        "model": MODEL,
        "max_tokens": 50,
        "tools": [{"name": WIRE_NAME, "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": WIRE_NAME},
    }

    def ask(messages: Any) -> Any:
        if not streamed:
            return claude.messages.create(messages=messages, **asked)
        with claude.messages.stream(messages=messages, **asked) as stream:
            return stream.get_final_message()

    first = ask(HI)
    calls = [each for each in first.content if each.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": each.id, "content": json.dumps(each.input)} for each in calls]
    second = ask([*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}])

    assert first.stop_reason == "tool_use"
    assert [(each.name, each.input) for each in calls] == [(WIRE_NAME, {"text": "a"}), (WIRE_NAME, {"text": "b"})]
    assert second.stop_reason == "end_turn"
    check_second_request(bench)


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize("streamed", [False, True])
def test_openais_sdk_answers_proposals_and_goes_on(
    gpt: openai.OpenAI, model: Tool, tools: None, bench: ProviderBench, streamed: bool
) -> None:
    bench.scripts = [PROPOSED, text_answer("Done")]
    asked: Any = {
        "model": MODEL,
        "tools": [{"type": "function", "name": WIRE_NAME, "parameters": SCHEMA}],
        "tool_choice": {"type": "function", "name": WIRE_NAME},
    }

    def ask(items: Any) -> Any:
        if not streamed:
            return gpt.responses.create(input=items, **asked)
        with gpt.responses.stream(input=items, **asked) as stream:
            return stream.until_done().get_final_response()

    first = ask(HI)
    calls = [each for each in first.output if each.type == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": each.call_id, "output": each.arguments} for each in calls]
    second = ask([*HI, *first.output, *outputs])

    assert [(each.name, json.loads(each.arguments)) for each in calls] == [
        (WIRE_NAME, {"text": "a"}),
        (WIRE_NAME, {"text": "b"}),
    ]
    assert second.output_text == "Done"
    assert second.tools[0].name == WIRE_NAME
    check_second_request(bench)


def check_second_request(bench: ProviderBench) -> None:
    first, second = bench.requests
    assert (first.tools[0].name, first.tool_choice.name) == (TOOL, TOOL)
    _, said, *answers = second.messages
    assert isinstance(said, AssistantMessage)
    assert [call.name for call in said.proposals] == [TOOL, TOOL]
    assert [each.call_id for each in answers if isinstance(each, ToolMessage)] == ["call_0", "call_1"]


FAILURES: list[tuple[Any, str, type[Exception], type[Exception]]] = [
    (ProviderRateLimited(retry_after_s=7), "PROVIDER.RATE_LIMITED", anthropic.RateLimitError, openai.RateLimitError),
    (
        ProviderUnavailable(),
        "PROVIDER.UNAVAILABLE",
        anthropic.APIStatusError,
        openai.InternalServerError,
    ),
]


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("failure", "reason", "of_anthropic", "of_openai"), FAILURES)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_provider_that_fails_is_an_error_of_the_sdks_own_and_has_the_hubs_reason(
    claude: anthropic.Anthropic,
    gpt: openai.OpenAI,
    model: Tool,
    bench: ProviderBench,
    failure: Any,
    reason: str,
    of_anthropic: type[Exception],
    of_openai: type[Exception],
    streamed: bool,
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(failure,), (failure,)]

    with pytest.raises(of_anthropic) as from_anthropic:
        claude.messages.create(model=MODEL, max_tokens=50, messages=HI, stream=streamed)
    with pytest.raises(of_openai) as from_openai:
        gpt.responses.create(model=MODEL, input="Hi", stream=streamed)

    for found in (from_anthropic.value, from_openai.value):
        assert isinstance(found, anthropic.APIStatusError | openai.APIStatusError)
        assert found.response.headers["x-hub-reason"] == reason
        assert found.response.headers["x-hub-call"].startswith("inv_")
    if isinstance(failure, ProviderUnavailable):
        assert isinstance(from_anthropic.value, anthropic.APIStatusError)
        assert (from_anthropic.value.status_code, from_anthropic.value.type) == (529, "overloaded_error")


@pytest.mark.req("LLM-5", "LLM-9")
def test_a_stream_that_breaks_off_is_an_error_and_no_end(
    claude: anthropic.Anthropic, gpt: openai.OpenAI, model: Tool, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(ChatDelta(text="Half", model="script-001"), StreamTruncated())] * 2
    kinds: list[str] = []

    with (
        claude.messages.stream(model=MODEL, max_tokens=50, messages=HI) as stream,
        pytest.raises(anthropic.APIStatusError, match="broke off"),
    ):
        kinds.extend(event.type for event in stream)
    with pytest.raises(openai.APIError, match="broke off"):
        kinds.extend(event.type for event in gpt.responses.create(model=MODEL, input="Hi", stream=True))

    assert {"content_block_delta", "response.output_text.delta"} < set(kinds)
    assert not {"message_stop", "response.completed"} & set(kinds)
    assert [call.state for call in Invocation.objects.all()] == ["failed", "failed"]


@pytest.mark.req("LLM-9")
def test_what_may_not_be_is_the_error_that_the_sdks_have_for_it(hub: str, caller: Caller, model: Tool) -> None:
    claude = anthropic.Anthropic(api_key=caller.key, base_url=hub, max_retries=0)
    stranger = anthropic.Anthropic(api_key="thk_nobody", base_url=hub, max_retries=0)
    gpt = openai.OpenAI(api_key=caller.key, base_url=f"{hub}/v1", max_retries=0)
    other = openai.OpenAI(api_key="thk_nobody", base_url=f"{hub}/v1", max_retries=0)

    with pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(model=MODEL, max_tokens=5, messages=HI)
    with pytest.raises(openai.AuthenticationError):
        other.responses.create(model=MODEL, input="Hi")
    with pytest.raises(anthropic.NotFoundError) as unknown:
        claude.messages.create(model="claude-opus-4", max_tokens=5, messages=HI)
    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(model="gpt-5", input="Hi")
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.create(model=MODEL, max_tokens=5, messages=HI, extra_body={"topp": 1})
    with pytest.raises(openai.BadRequestError) as stored:
        gpt.responses.create(model=MODEL, input="Hi", store=True)

    assert unknown.value.type == "not_found_error"
    assert stored.value.response.headers["x-hub-reason"] == "LLM.UNSUPPORTED"
    assert stored.value.param == "store"


@pytest.mark.req("LLM-7")
def test_tokens_are_counted_by_the_hubs_estimate_and_nobody_is_asked(
    claude: anthropic.Anthropic, model: Tool, bench: ProviderBench
) -> None:
    short = claude.messages.count_tokens(model=MODEL, messages=HI)
    long = claude.messages.count_tokens(model=MODEL, messages=HI, system="Be brief. " * 100)

    assert 0 < short.input_tokens < 30
    assert long.input_tokens > 300
    assert short.to_dict()["hub"] == {"counted_by": "estimate"}
    assert (bench.provider, Invocation.objects.count()) == (None, 0)


class Echoed(BaseModel):
    text: str


@pytest.mark.req("LLM-1")
def test_what_openais_helpers_have_read_goes_back_as_it_is(
    gpt: openai.OpenAI, model: Tool, tools: None, bench: ProviderBench
) -> None:
    bench.scripts = [PROPOSED, text_answer("Done")] * 2
    shown = openai.pydantic_function_tool(Echoed, name=WIRE_NAME)

    parsed = gpt.chat.completions.parse(model=MODEL, messages=HI, tools=[shown])
    results: Any = [{"role": "tool", "tool_call_id": f"call_{place}", "content": "x"} for place in (0, 1)]
    said: Any = parsed.choices[0].message
    whole = gpt.chat.completions.create(model=MODEL, messages=[*HI, said, *results], tools=[shown])
    with gpt.chat.completions.stream(model=MODEL, messages=HI, tools=[shown]) as stream:
        said = stream.get_final_completion().choices[0].message
    again = gpt.chat.completions.create(model=MODEL, messages=[*HI, said, *results], tools=[shown])

    assert [each.choices[0].message.content for each in (whole, again)] == ["Done", "Done"]
    for request in (bench.requests[1], bench.requests[3]):
        assert [each.arguments for each in request.messages[1].proposals] == [{"text": "a"}, {"text": "b"}]
