"""Gemini streams: is what Gemini streams the answer that it means, whatever its chunks leave out?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from llm.answers import ChatAnswer, FinishReason
from llm.messages import ProviderState
from llm.problems import ProviderAnswerUnreadable, StreamTruncated
from llm.providers.gemini_streams import ContentReader
from llm.streams import collect_answer
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from llm.answers import ChatDelta

Chunk = dict[str, Any]


def content(*parts: Chunk, reason: str | None = None, **others: Any) -> Chunk:
    ended = {} if reason is None else {"finishReason": reason}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **ended}], **others}


def call(name: str, arguments: Any = None, **others: Any) -> Chunk:
    return {"functionCall": {"name": name, **({} if arguments is None else {"args": arguments})}, **others}


def read(*chunks: Chunk, names: dict[str, str] | None = None) -> ChatAnswer:
    async def deltas() -> AsyncGenerator[ChatDelta, None]:
        reader = ContentReader(names or {})
        for chunk in chunks:
            for delta in reader.read(chunk):
                yield delta
        yield reader.finish()

    async def main() -> ChatAnswer:
        return await collect_answer(deltas())

    return anyio.run(main)


@pytest.mark.req("LLM-1", "LLM-5")
def test_texts_are_joined_thoughts_left_out_and_of_all_counts_the_last_taken() -> None:
    counts = {"promptTokenCount": 8, "candidatesTokenCount": 1, "thoughtsTokenCount": 2, "cachedContentTokenCount": 3}

    answer = read(
        content({"text": "Think.", "thought": True}, modelVersion="gemini-2.5-flash-001", usageMetadata=counts),
        content({"text": "Hel"}, usageMetadata=counts),
        content({"text": "lo"}, reason="STOP", usageMetadata={**counts, "candidatesTokenCount": 5}),
    )

    assert (answer.text, answer.finish_reason, answer.model) == ("Hello", FinishReason.STOP, "gemini-2.5-flash-001")
    assert answer.usage == Usage(8, 7, 3)
    assert answer.provider_state is None


@pytest.mark.req("LLM-5")
def test_counts_may_come_behind_the_end_and_a_provider_that_counts_nothing_has_no_usage() -> None:
    late = {"candidates": [{"index": 0}], "usageMetadata": {"promptTokenCount": 4}}

    assert read(content({"text": "a"}, reason="STOP"), late).usage == Usage(4)
    assert read(content({"text": "a"}, reason="STOP")).usage is None


@pytest.mark.req("LLM-3")
def test_calls_have_the_names_of_the_tools_and_their_signatures_are_kept_for_the_next_request() -> None:
    answer = read(
        content({"text": "See:"}, call("get_weather", {"city": "Rome"}, thoughtSignature="S0")),
        content(call("get_weather", {"city": "Oslo"}), call("unknown", None)),
        content({"text": "", "thoughtSignature": "ST"}, reason="STOP"),
        names={"get_weather": "acme.weather.get"},
    )

    assert [(each.id, each.name, each.arguments) for each in answer.proposals] == [
        ("call_1", "acme.weather.get", {"city": "Rome"}),
        ("call_2", "acme.weather.get", {"city": "Oslo"}),
        ("call_3", "unknown", {}),
    ]
    assert answer.finish_reason is FinishReason.TOOL
    assert answer.provider_state == ProviderState("gemini", {"0": "S0", "text": "ST"})


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("SAFETY", FinishReason.SAFETY),
        ("RECITATION", FinishReason.SAFETY),
        ("PROHIBITED_CONTENT", FinishReason.SAFETY),
        ("MALFORMED_FUNCTION_CALL", FinishReason.OTHER),
        ("FINISH_REASON_UNSPECIFIED", FinishReason.OTHER),
        ("SOMETHING_OF_NEXT_YEAR", FinishReason.OTHER),
        ("FUNCTION_CALL", FinishReason.OTHER),  # and no call beside it
    ],
)
def test_every_reason_of_an_end_has_a_meaning(reason: str, finish: FinishReason) -> None:
    assert read(content({"text": "a"}, reason=reason)).finish_reason is finish


@pytest.mark.req("LLM-3", "LLM-5")
def test_calls_beside_any_reason_that_ends_a_whole_answer_are_proposals_and_beside_a_cut_are_not_used() -> None:
    for reason in ("STOP", "FUNCTION_CALL"):
        answer = read(content(call("a", {"n": 1}), reason=reason))
        assert (answer.finish_reason, answer.proposals[0].arguments) == (FinishReason.TOOL, {"n": 1})

    cut = read(content(call("a", {"n": 1}), reason="MAX_TOKENS"))
    assert (cut.finish_reason, cut.proposals[0].arguments) == (FinishReason.LENGTH, None)


@pytest.mark.req("LLM-9")
def test_a_prompt_that_is_blocked_ends_for_reasons_of_safety_with_what_it_cost() -> None:
    answer = read({"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 6}})

    assert (answer.finish_reason, answer.text, answer.usage) == (FinishReason.SAFETY, "", Usage(6))


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [{}],
        [content({"text": "a"})],
        [content({"text": "a"}, reason="STOP"), content({"text": "b"})],  # a reason in every chunk but the last
        [{"candidates": "canary"}],
    ],
)
def test_a_stream_without_a_reason_for_its_end_broke_off(chunks: list[Chunk]) -> None:
    with pytest.raises(StreamTruncated):
        read(*chunks)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "chunks",
    [
        [{"candidates": [{"index": 1, "content": {"parts": [{"text": "a"}]}}]}],
        [content({"functionCall": {"name": "a", "partialArgs": []}})],
        [content({"functionCall": {"name": "a", "willContinue": True}})],
        [content({"text": "a"}, modelVersion="one"), content({"text": "b"}, modelVersion="two")],
    ],
)
def test_an_answer_that_was_not_asked_for_is_refused(chunks: list[Chunk]) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        read(*chunks)
