"""OpenAI streams: what servers do in their own way comes out as one form, and reasoning goes back as it came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import SchemaInvalid
from llm.messages import AssistantMessage, AttachmentRef, ProviderState, Text, ToolMessage, UserMessage
from llm.problems import ParameterUnsupported, ProviderAnswerUnreadable, StreamTruncated
from llm.provider_factory import ProviderConfig
from llm.providers.http_chats import refuse_files
from llm.providers.openai_chat import build_provider
from llm.providers.openai_requests import OpenAIRequest
from llm.providers.openai_streams import ChatReader
from llm.requests import ChatRequest
from llm.streams import AnswerCollector
from unitools.calls import ToolCall
from unitools.dialects.parsers.proposals import MOST

if TYPE_CHECKING:
    from llm.answers import ChatAnswer

NAMES = {"bank_pay": "bank.pay"}


def read(*deltas: dict[str, Any], reason: str = "stop") -> ChatAnswer:
    """The answer of a stream with these deltas."""
    reader, collector = ChatReader(NAMES, provider="openai_compatible"), AnswerCollector()
    chunks = [{"choices": [{"index": 0, "delta": each}]} for each in deltas]
    ends = [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
    for chunk in chunks + ends:
        reader.feed(f"data: {json.dumps(chunk)}\n\n".encode())
        for piece in reader.take_pieces():
            collector.add(piece)
    reader.feed(b"data: [DONE]\n\n")
    reader.finish()
    collector.add(reader.build_end())
    return collector.build_answer()


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"function": {"name": "bank_pay", "arguments": arguments}, **more}


def build(*messages: Any) -> list[dict[str, Any]]:
    asked = ChatRequest(model="main", messages=messages)
    return anyio.run(OpenAIRequest(asked, "openai_compatible", refuse_files).build_messages)


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    "deltas",
    [
        [{"tool_calls": [call('{"a": 1}', id="x"), call('{"a": 2}', id="y")]}],
        [{"tool_calls": [call('{"a": 1}', id="x", index=0)]}, {"tool_calls": [call('{"a": 2}', id="y", index=0)]}],
        [
            {"tool_calls": [call('{"a"', id="x", index=0)]},
            {"tool_calls": [call(": 1}", index=0)]},
            {"tool_calls": [call('{"a": 2}', id="y", index=1)]},
        ],
        [{"tool_calls": [call({"a": 1}, id="x", index=0), call({"a": 2}, id="y", index=1)]}],
    ],
    ids=["no index", "one index for all", "the name in each piece", "arguments as objects"],
)
def test_calls_are_told_apart_however_a_server_numbers_them(deltas: list[dict[str, Any]]) -> None:
    answer = read(*deltas, reason="tool_calls")

    assert [(each.id, each.name, each.arguments) for each in answer.proposals] == [
        ("x", "bank.pay", {"a": 1}),
        ("y", "bank.pay", {"a": 2}),
    ]


@pytest.mark.req("LLM-5")
def test_pieces_of_one_call_stay_one_whatever_ids_they_have() -> None:
    named = {"tool_calls": [call('{"a"', id="x", index=0)]}
    pieces = [
        {"tool_calls": [{"index": 0, "id": id, "function": {"arguments": text}}]}
        for id, text in [("y", ": "), ("z", "1}")]
    ]

    [proposal] = read(named, *pieces, reason="tool_calls").proposals

    assert (proposal.id, proposal.name, proposal.arguments) == ("x", "bank.pay", {"a": 1})


@pytest.mark.req("LLM-5")
def test_arguments_that_are_no_object_are_not_taken_for_none() -> None:
    [proposal] = read({"tool_calls": [call([1], id="x")]}, reason="tool_calls").proposals

    assert proposal.problem is not None


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    "choice",
    [
        {"index": 0, "delta": {"function_call": {"name": "bank_pay", "arguments": "{}"}}},
        {"index": 0, "message": {"content": "whole"}},
        {"index": 1, "delta": {"content": "of another"}},
    ],
    ids=["old call", "whole answer", "second answer"],
)
def test_what_was_not_asked_for_is_no_answer(choice: dict[str, Any]) -> None:
    reader = ChatReader(NAMES, provider="openai")

    with pytest.raises(ProviderAnswerUnreadable):
        reader.feed(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


@pytest.mark.req("LLM-5")
def test_nothing_behind_the_mark_is_a_part_of_the_answer() -> None:
    reader = ChatReader(NAMES, provider="openai")
    reader.feed(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n')
    reader.take_pieces()

    reader.feed(b'data: {"choices": [{"delta": {"content": "evil"}}]}\n\n')

    assert reader.take_pieces() == []


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    "chunk", [{"choices": [{"delta": {}, "finish_reason": ["stop"]}]}, {"model": {"a": 1}, "choices": []}]
)
def test_a_reason_or_a_model_that_is_no_text_is_none(chunk: dict[str, Any]) -> None:
    reader = ChatReader(NAMES, provider="openai")
    reader.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    assert (reader.model, reader.reason) == ("", "")
    with pytest.raises(StreamTruncated):
        reader.finish()


@pytest.mark.req("LLM-10")
def test_a_key_that_no_header_takes_is_refused_when_its_provider_is_connected() -> None:
    for key in ("sk-é", "sk-\nx", "sk-…"):
        with pytest.raises(SchemaInvalid):
            build_provider(ProviderConfig(kind="openai", key=key))


@pytest.mark.req("LLM-2")
def test_a_file_is_sent_without_its_name_and_a_text_as_one() -> None:
    async def resolve(segment: Any) -> bytes:
        return b"a,b"

    def build_part(media_type: str) -> dict[str, Any]:
        segment = AttachmentRef(
            id="art_01kc8q4m7tfxz000000000000a", media_type=media_type, size_bytes=3, name="Jane Doe"
        )
        asked = ChatRequest(model="main", messages=(UserMessage((Text("Look"), segment)),))
        [built] = anyio.run(OpenAIRequest(asked, "openai", resolve).build_messages)
        return built["content"][1]  # type: ignore[no-any-return]

    assert build_part("text/csv") == {"type": "text", "text": "a,b"}
    assert build_part("application/problem+json") == {"type": "text", "text": "a,b"}
    assert build_part("application/pdf")["file"]["filename"] == "file.pdf"
    with pytest.raises(ParameterUnsupported):
        build_part("application/zip")


@pytest.mark.req("LLM-5")
def test_text_may_come_as_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "Hi"}, {"type": "reference", "ids": [1]}, " there"]

    assert read({"content": parts}, {"content": "!"}).text == "Hi there!"


@pytest.mark.req("LLM-5")
def test_more_calls_than_are_read_end_the_answer() -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        read({"tool_calls": [call("{}", id=str(place)) for place in range(MOST + 1)]})


@pytest.mark.req("LLM-1")
def test_reasoning_goes_back_in_its_field_and_is_not_missing_beside_a_call() -> None:
    answer = read({"reasoning_content": "I th", "reasoning": "I th"}, {"reasoning": "ink."}, {"content": "Hm"})
    assert answer.provider_state == ProviderState("openai_compatible", {"reasoning": "I think."})
    proposal = ToolCall("x", "bank.pay", {"a": 1}, provider_id="x")

    built = build(
        UserMessage((Text("Pay"),)),
        AssistantMessage((Text("Hm"),), (), answer.provider_state),
        UserMessage((Text("Go on"),)),
        AssistantMessage((), (proposal,)),
        ToolMessage(call_id="x", segments=(Text("done"),)),
    )

    assert built[1] == {"role": "assistant", "content": "Hm", "reasoning": "I think."}
    assert built[3]["reasoning"] == ""
    assert built[3]["tool_calls"][0]["function"] == {"name": "bank_pay", "arguments": '{"a": 1}'}


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize("data", ["a text", {"content": "x"}, {"reasoning": 1}, [{"id": "reasoning"}]])
def test_a_state_that_is_none_of_its_own_is_refused_and_one_of_others_left_out(data: Any) -> None:
    said = UserMessage((Text("Hi"),))
    others = AssistantMessage((Text("Hm"),), (), ProviderState("anthropic", data))

    assert build(said, others)[1] == {"role": "assistant", "content": "Hm"}
    with pytest.raises(ParameterUnsupported):
        build(said, AssistantMessage((Text("Hm"),), (), ProviderState("openai_compatible", data)))
