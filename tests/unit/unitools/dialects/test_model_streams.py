"""Model streams: is a streamed answer the one that would have come at once, however it was cut, and never used where it broke
off?
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.support.bfcl_corpus import cases
from tests.support.model_responses import WHOLE, responses, said_in_chat, tagged
from tests.support.model_streams import STREAMS, calls_in, event_text
from unitools import Status, StreamCollector, Universe
from unitools.dialects import (
    DialectError,
    NotJson,
    ReadOptions,
    ResponseTooLarge,
    UnknownResponse,
    UnreadableResponse,
    find_driver,
    recognise_response,
)
from unitools.dialects.streams import collect_response

if TYPE_CHECKING:
    from collections.abc import Sequence


TWO = [("save", {"n": 1, "text": "é 中 😀 \u2028"}), ("load", {"path": ["a", {"b": None}]})]
EVERY = 7  # bytes


def chunks_of(dialect: str, calls: Sequence[tuple[str, Any]] = TWO) -> list[dict[str, Any]]:
    return list(STREAMS[dialect](WHOLE[dialect](calls)))


def text_of(dialect: str, calls: Sequence[tuple[str, Any]] = TWO) -> str:
    return event_text(chunks_of(dialect, calls), dialect=dialect)


@pytest.mark.req("CONN-5", "LLM-5", "TOOLS-30")
@pytest.mark.parametrize("dialect", STREAMS)
def test_a_stream_is_recognised_and_holds_the_same_calls_as_the_whole(dialect: str) -> None:
    whole = WHOLE[dialect](TWO)

    for stream in (text_of(dialect), text_of(dialect).encode(), chunks_of(dialect), json.dumps(chunks_of(dialect))):
        assert recognise_response(stream).dialect == dialect
        assert calls_in(dialect, stream) == calls_in(dialect, whole)
        assert [name for name, _, problem in calls_in(dialect, stream) if problem is None] == ["save", "load"]


@pytest.mark.req("CONN-5", "LLM-5")
@pytest.mark.parametrize(
    "dialect", STREAMS.keys() - {"langchain"}
)  # which builds a message of pieces, as LangChain does
def test_what_is_built_is_the_response_that_would_have_come_at_once(dialect: str) -> None:
    built, whole = collect_response(chunks_of(dialect)), WHOLE[dialect](TWO)

    if dialect == "openai":
        assert built["usage"]["total_tokens"] == 7
        whole["choices"][0].pop("logprobs")
        whole["choices"][0]["message"].pop("refusal")
    if dialect == "gemini":
        assert built["usageMetadata"]["promptTokenCount"] == 3
    built.pop("usageMetadata", None)
    if dialect == "openai":
        built.pop("usage")
    assert built == whole


@pytest.mark.req("CONN-5", "LLM-5")
@pytest.mark.parametrize("dialect", STREAMS)
@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_it_does_not_matter_where_the_text_is_cut(dialect: str, size: int, line_end: str) -> None:
    text = event_text(chunks_of(dialect), dialect=dialect, line_end=line_end).encode()
    collector = StreamCollector()

    for at in range(0, len(text), size):
        collector.feed(text[at : at + size])

    assert collector.is_complete
    assert collector.dialect == dialect
    assert collector.build_response() == collect_response(chunks_of(dialect))


def check_broken_off(dialect: str, text: bytes, expected: list[Any], *, every: int) -> int:
    """Broken off after each so many bytes nothing is used, but where only an empty line is missing; says how many were refused."""
    refused = 0
    for at in range(every, len(text), every):
        try:
            built = collect_response([text[:at]])
        except (UnreadableResponse, UnknownResponse, NotJson):
            refused += 1
        else:
            assert calls_in(dialect, built) == expected, text[:at]
    return refused


@pytest.mark.req("CONN-5", "TOOLS-30")
@pytest.mark.parametrize("dialect", STREAMS)
def test_of_a_stream_that_broke_off_nothing_is_used_wherever_it_broke(dialect: str) -> None:
    text = text_of(dialect).encode()

    refused = check_broken_off(dialect, text, calls_in(dialect, text), every=1)

    assert refused > len(text) * 0.6


def check_streamed_calls(dialect: str, step: int) -> int:
    """Every step-th case in pieces of seven bytes: before the end nothing would be used, at the end all. Says how often it was cut."""
    cut = 0
    for case in cases()[::step]:
        text = text_of(dialect, case.calls).encode()
        expected = [(name, arguments, None) for name, arguments in case.calls]
        collector, complete_at = StreamCollector(), 0
        for at in range(0, len(text), EVERY):
            collector.feed(text[at : at + EVERY])
            complete_at = complete_at or (at if collector.is_complete else 0)
            cut += not complete_at
        assert json.dumps(calls_in(dialect, collector.build_response())) == json.dumps(expected)
        # Where it is complete earlier than that, only an empty line or the usage is missing.
        assert json.dumps(calls_in(dialect, collect_response([text[: complete_at + EVERY]]))) == json.dumps(expected)
        check_broken_off(dialect, text, expected, every=EVERY * 29)
    return cut


@pytest.mark.req("CONN-5", "TOOLS-30")
@pytest.mark.parametrize("dialect", STREAMS)
def test_calls_of_the_corpus_are_the_same_when_they_are_streamed(dialect: str) -> None:
    assert check_streamed_calls(dialect, 20) > 2_000


@pytest.mark.req("CONN-5", "TOOLS-30")
@pytest.mark.long
@pytest.mark.parametrize("dialect", STREAMS)
def test_each_call_of_the_corpus_is_the_same_when_it_is_streamed(dialect: str) -> None:
    assert check_streamed_calls(dialect, 1) > 40_000


@pytest.mark.req("CONN-5", "LLM-5")
def test_the_sdks_put_the_same_chunks_together_alike() -> None:
    state = ChatCompletionStreamState()
    for chunk in chunks_of("openai"):
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    theirs = state.get_final_completion().to_dict()
    ours = collect_response(chunks_of("openai"))
    assert isinstance(theirs["choices"], list)
    said = [each["function"] for each in theirs["choices"][0]["message"]["tool_calls"]]
    assert [{"name": each["name"], "arguments": each["arguments"]} for each in said] == [
        each["function"] for each in ours["choices"][0]["message"]["tool_calls"]
    ]

    events, message = TypeAdapter[RawMessageStreamEvent](RawMessageStreamEvent), None
    buffers: dict[int, bytes] = {}
    for event in chunks_of("anthropic"):
        if event["type"] != "ping":
            message = accumulate_event(event=events.validate_python(event), current_snapshot=message, json_bufs=buffers)
    assert message is not None
    assert message.to_dict()["content"] == collect_response(chunks_of("anthropic"))["content"]


@pytest.mark.req("CONN-5", "LLM-5")
def test_the_objects_of_the_sdks_are_taken_as_they_are() -> None:
    sdks: dict[str, Any] = {
        "openai": ChatCompletionChunk,
        "openai-responses": ResponseStreamEvent,
        "anthropic": RawMessageStreamEvent,
        "gemini": GenerateContentResponse,
    }
    for dialect, kind in sdks.items():
        reader = TypeAdapter(kind)
        objects = [reader.validate_python(chunk) for chunk in chunks_of(dialect) if chunk.get("type") != "ping"]

        assert calls_in(dialect, collect_response(objects)) == calls_in(dialect, WHOLE[dialect](TWO))
        assert recognise_response(objects).dialect == dialect


def call(index: int | None, id: str | None = None, **said: Any) -> dict[str, Any]:
    piece = {"function": said} | ({} if index is None else {"index": index}) | ({"id": id} if id else {})
    return {"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


@pytest.mark.req("CONN-5", "LLM-5")
@pytest.mark.parametrize(
    "chunks",
    [
        # one number for all, told apart by their ids
        [call(0, "a", name="save", arguments='{"n": 1}'), call(0, "b", name="load", arguments='{"n": 2}')],
        [call(None, "a", name="save", arguments='{"n": 1}'), call(None, "b", name="load", arguments='{"n": 2}')],
        # the name whole in each chunk, or in pieces
        [
            call(0, "a", name="save", arguments='{"n"'),
            call(0, "a", name="save", arguments=": 1}"),
            call(1, "b", name="lo"),
            call(1, name="ad", arguments='{"n": 2}'),
        ],
        # mixed, and by an id that comes back
        [
            call(0, "a", name="save", arguments='{"n"'),
            call(1, "b", name="load", arguments='{"n": '),
            call(0, arguments=": 1}"),
            call(1, arguments="2}"),
        ],
        [call(0, "a", name="save", arguments={"n": 1}), call(1, "b", name="load", arguments={"n": 2})],
        # whole, and by nothing told apart
        [
            {
                "choices": [
                    {
                        "delta": {
                            "tool_calls": [
                                {"function": {"name": "save", "arguments": '{"n": 1}'}},
                                {"function": {"name": "load", "arguments": '{"n": 2}'}},
                            ]
                        }
                    }
                ]
            }
        ],
    ],
)
def test_servers_that_number_and_name_calls_in_their_own_way_are_understood(chunks: list[dict[str, Any]]) -> None:
    azure = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []}

    for stream in ([*chunks, END], [azure, *chunks, END]):
        assert recognise_response(stream).dialect == "openai"
        assert calls_in("openai", stream) == [("save", {"n": 1}, None), ("load", {"n": 2}, None)]


@pytest.mark.req("CONN-5", "TOOLS-30")
def test_an_answer_that_its_provider_cut_says_so_in_each_call() -> None:
    for dialect, reason in {
        "openai": "length",
        "openai-responses": "incomplete",
        "anthropic": "max_tokens",
        "gemini": "MAX_TOKENS",
        "bedrock": "max_tokens",
        "langchain": "length",
    }.items():
        stream = list(STREAMS[dialect](WHOLE[dialect](TWO, reason)))

        assert [problem for _, _, problem in calls_in(dialect, stream)] == ["truncated", "truncated"]


@pytest.mark.req("CONN-5")
@pytest.mark.parametrize("odd", [{1: 2}, {None: {}}, {("a",): []}])
def test_chunks_whose_keys_are_no_text_are_of_no_dialect(odd: Any) -> None:
    with pytest.raises(UnknownResponse):
        recognise_response([odd])
    for dialect in STREAMS:
        begun = chunks_of(dialect)[:1]
        with pytest.raises(UnreadableResponse, match="ended before the answer did"):
            collect_response([*begun, odd])


@pytest.mark.req("CONN-5", "LLM-5")
@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "the prompt was: hunter2", "code": "rate_limit_exceeded"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "hunter2"}},
        {"type": "error", "code": "server_error", "message": "hunter2", "sequence_number": 4},
        {"error": {"code": 503, "message": "hunter2", "status": "UNAVAILABLE"}},
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "hunter2"}}},
        {"error": "hunter2 hunter2"},
        {"throttlingException": {"message": "hunter2"}},
    ],
)
def test_an_error_of_the_provider_ends_the_stream_and_is_named_without_its_text(event: dict[str, Any]) -> None:
    for before in ([], chunks_of("openai-responses")[:3]):
        with pytest.raises(UnreadableResponse) as caught:
            collect_response([*before, event])

        assert "hunter2" not in str(caught.value)
        assert "Ask the model again." in str(caught.value)
    with pytest.raises(UnreadableResponse, match="rate_limit_exceeded"):
        collect_response([{"error": {"code": "rate_limit_exceeded"}}])


@pytest.mark.req("CONN-5")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("data: {broken\n\n", NotJson),
        ('data: {"choices": [], "choices": []}\n\n', NotJson),
        ('data: {"choices": [{"index": NaN}]}\n\n', NotJson),
        (b'data: {"a": "\xff"}\n\n', NotJson),
        ('data: {"answer": 42}\n\n', UnknownResponse),
        ("data: [1, 2]\n\n", UnknownResponse),
        (": keep-alive\n\ndata: [DONE]\n\n", UnknownResponse),
        (f"data: {'[' * 100}{']' * 100}\n\n", ResponseTooLarge),
        (f'data: {{"choices": [], "x": "{"y" * 8 * 1024 * 1024}"}}\n\n', ResponseTooLarge),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_no_stream_of_an_answer_is_refused(text: str | bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        collect_response([text])


@pytest.mark.req("CONN-5")
@pytest.mark.parametrize(
    "text", ["data: 7 samples, {all} taken.", "event: the fair", "id: 5\n", ":) good day", "data:"]
)
def test_a_text_that_only_begins_like_events_stays_a_text(text: str) -> None:
    assert recognise_response(text).parse(text, ReadOptions()) == []


@pytest.mark.req("CONN-5")
@pytest.mark.parametrize("stream", [[], [1], [{"answer": 42}], [None], [object()], [{"choices": []}]])
def test_a_list_that_holds_no_chunks_is_not_taken_for_a_stream(stream: list[Any]) -> None:
    with pytest.raises(UnknownResponse):
        recognise_response(stream)


@pytest.mark.req("CONN-5", "TOOLS-30")
def test_the_text_of_a_streamed_answer_may_hold_calls_in_xml() -> None:
    stream = list(
        STREAMS["openai"](said_in_chat(tagged([("save", {"n": 1})])) | {"id": "c", "created": 1, "model": "m"})
    )

    assert recognise_response(stream).dialect == "xml"


@pytest.mark.req("CONN-5", "LLM-5")
def test_what_a_server_wants_back_is_carried_along() -> None:
    first = call(0, "a", name="save", arguments="{}")
    first["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    first["choices"][0]["delta"] |= {"reasoning_content": "I th", "reasoning_details": [{"id": 1}]}
    more = {"choices": [{"delta": {"reasoning_content": "ink.", "reasoning_details": [{"id": 2}], "n": 7}}]}

    message = collect_response([first, more, END])["choices"][0]["message"]

    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert (message["reasoning_content"], message["reasoning_details"], message["n"]) == (
        "I think.",
        [{"id": 1}, {"id": 2}],
        7,
    )


@pytest.mark.req("TOOLS-30")
def test_a_text_of_arguments_that_is_no_object_is_judged_as_text_of_a_destructive_tool() -> None:
    for text in ("null", '"{\\"a\\": 1}"', "[1]"):
        events = [
            {"type": "message_start", "message": {"role": "assistant", "content": []}},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "a", "name": "wipe", "input": {}},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        ]
        (proposed,) = find_driver("anthropic").parse(events, ReadOptions(destructive=frozenset({"wipe"})))

        assert proposed.problem is not None, text


@pytest.mark.req("TOOLS-30")
def test_more_calls_than_are_taken_are_refused_while_they_arrive() -> None:
    many = [{"id": f"call_{number}", "function": {"name": "f"}} for number in range(100_000)]

    with pytest.raises(ResponseTooLarge, match="more than 1000 calls"):
        collect_response([{"choices": [{"delta": {"tool_calls": many}}]}])


NAMES = [
    "type",
    "index",
    "delta",
    "choices",
    "tool_calls",
    "function",
    "id",
    "name",
    "arguments",
    "usage",
    "message",
    "content_block",
    "content",
    "candidates",
    "parts",
    "text",
    "item",
    "output_index",
    "response",
    "finish_reason",
]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("CONN-5", "LLM-5")
@pytest.mark.parametrize("dialect", STREAMS)
@given(
    chunks=st.lists(
        st.dictionaries(st.sampled_from(["type", "choices", "delta", "candidates", "index", "response"]), ANY_JSON)
    )
)
def test_whatever_a_server_sends_is_refused_by_name_or_taken(dialect: str, chunks: list[dict[str, Any]]) -> None:
    whole = chunks_of(dialect)

    with contextlib.suppress(DialectError):
        find_driver(dialect).parse([whole[0], *chunks, *whole[1:]], ReadOptions())
    for kind in (
        "content_block_delta",
        "content_block_start",
        "message_delta",
        "response.output_item.done",
        "response.completed",
    ):
        with contextlib.suppress(DialectError):
            collect_response([whole[0], *({**chunk, "type": kind} for chunk in chunks)])


@pytest.mark.req("CONN-5", "LLM-5")
def test_items_come_from_their_own_events_where_the_last_one_leaves_them_out() -> None:
    *events, last = chunks_of("openai-responses")
    last = {**last, "response": {**last["response"], "output": []}}
    unnumbered = [{name: value for name, value in event.items() if name != "output_index"} for event in events]

    assert calls_in("openai-responses", [*events, last]) == calls_in("openai-responses", responses(TWO))
    assert calls_in("openai-responses", [*unnumbered, last]) == calls_in("openai-responses", responses(TWO))


@pytest.mark.req("CONN-5", "UNI-5")
def test_a_universe_dispatches_a_stream_and_answers_in_its_dialect() -> None:
    u = Universe()

    @u.tool
    def save(n: int, text: str) -> int:
        return n + len(text)

    results = anyio.run(u.dispatch, text_of("anthropic", TWO[:1]))

    assert [(result.status, result.value) for result in results] == [(Status.OK, 8)]
    assert results.to_messages()[0]["content"][0]["tool_use_id"] == "toolu_0"
