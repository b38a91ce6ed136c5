"""Served folds: do the accumulators of the providers' own SDKs read our streams to the same answer as our whole answers?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic, APIStatusError
from openai import APIError, OpenAI

from llm.problems import StreamTruncated
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.openai_responses import OpenAIResponses
from tests.support.model_servers import Reply, json_reply, model_server
from tests.support.served_answers import ABOUT, ANSWERS, build_deltas, write_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.http_server import Heard


MESSAGES, RESPONSES = AnthropicMessages(), OpenAIResponses()
ASKED: Any = {"model": ABOUT.model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def serve(whole: dict[str, Any], stream: str) -> Callable[[Heard], Reply]:
    """A server that answers as it is asked."""

    def answer(heard: Heard) -> Reply:
        if b'"stream":true' in heard.body.replace(b" ", b""):
            return Reply([stream.encode()], content_type="text/event-stream")
        return json_reply(whole)

    return answer


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("name", ANSWERS)
def test_anthropics_sdk_reads_the_same_message_from_a_stream(name: str) -> None:
    answer = ANSWERS[name]
    with (
        model_server(serve(MESSAGES.write(answer, ABOUT), write_stream(MESSAGES, answer))) as server,
        Anthropic(api_key="key", base_url=server.url, max_retries=0) as client,
    ):
        whole = client.messages.create(**ASKED).to_dict()
        with client.messages.stream(**ASKED) as stream:
            texts = list(stream.text_stream)
            streamed = stream.get_final_message().to_dict()

    assert whole.pop("hub")
    assert streamed == whole
    assert len(texts) >= len(build_deltas(answer)) - 1


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("name", [name for name in ANSWERS if ANSWERS[name]["finish_reason"] in ("stop", "tool")])
def test_openais_sdk_reads_the_same_response_from_a_stream(name: str) -> None:
    answer = ANSWERS[name]
    snapshots: dict[str, str] = {}
    with (
        model_server(serve(RESPONSES.write(answer, ABOUT), write_stream(RESPONSES, answer))) as server,
        OpenAI(api_key="key", base_url=server.url, max_retries=0) as client,
    ):
        whole = client.responses.create(model=ABOUT.model, input="Hi")
        asked: Any = client.responses.stream(model=ABOUT.model, input="Hi")
        with asked as stream:
            for event in stream:
                if event.type in ("response.output_text.delta", "response.function_call_arguments.delta"):
                    snapshots[event.item_id] = event.snapshot
            streamed = stream.get_final_response()

    assert streamed.output_text == whole.output_text
    assert _leave_out_parsed(streamed.to_dict()) == whole.to_dict()
    items: Any = whole.to_dict()["output"]
    said = {
        each["id"]: each.get("arguments") or each["content"][0]["text"] for each in items if each["type"] != "reasoning"
    }
    assert snapshots == said


def _leave_out_parsed(response: Any) -> Any:
    if isinstance(response, dict):
        return {
            name: _leave_out_parsed(value)
            for name, value in response.items()
            if name not in ("parsed", "parsed_arguments")
        }
    return [_leave_out_parsed(each) for each in response] if isinstance(response, list) else response


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("name", [name for name in ANSWERS if ANSWERS[name]["finish_reason"] not in ("stop", "tool")])
def test_an_answer_that_is_not_whole_ends_as_an_incomplete_response(name: str) -> None:
    answer = ANSWERS[name]
    with (
        model_server(serve(RESPONSES.write(answer, ABOUT), write_stream(RESPONSES, answer))) as server,
        OpenAI(api_key="key", base_url=server.url, max_retries=0) as client,
    ):
        whole = client.responses.create(model=ABOUT.model, input="Hi")
        last: Any = list(client.responses.create(model=ABOUT.model, input="Hi", stream=True))[-1]

    assert (last.type, whole.status) == ("response.incomplete", "incomplete")
    assert last.response.to_dict() == whole.to_dict()


@pytest.mark.req("LLM-2")
def test_a_stream_that_broke_off_is_an_error_of_both_sdks() -> None:
    deltas = build_deltas(ANSWERS["text"])[:3]
    streams = []
    for served in (MESSAGES, RESPONSES):
        writer = served.open_stream(ABOUT, {})
        streams.append("".join([*map(writer.add, deltas), writer.fail(StreamTruncated())]))

    with (
        model_server(serve({}, streams[0])) as server,
        Anthropic(api_key="key", base_url=server.url, max_retries=0) as client,
        client.messages.stream(**ASKED) as stream,
        pytest.raises(APIStatusError, match="broke off"),
    ):
        stream.get_final_message()
    with (
        model_server(serve({}, streams[1])) as server,
        OpenAI(api_key="key", base_url=server.url, max_retries=0) as openai,
        pytest.raises(APIError, match="broke off"),
    ):
        list(openai.responses.create(model=ABOUT.model, input="Hi", stream=True))
