"""aimock for Gemini: does our adapter speak with a mock that others wrote of Gemini's wire: the same answer in both ways, no
call run?
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import Problem
from llm.answers import FinishReason
from llm.messages import SystemMessage, Text, ToolMessage, UserMessage
from llm.problems import ContextOverflow, ProviderKeyRefused, ProviderQuotaExhausted, ProviderUnavailable
from llm.provider_factory import ProviderConfig
from llm.providers.gemini import GeminiProvider
from llm.requests import ChatRequest, SchemaFormat
from llm.streams import collect_answer
from tests.support.aimock import Aimock, run_aimock
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm.answers import ChatAnswer

PAY = ToolSpec("bank_pay", "Pay somebody.", {"type": "object", "properties": {"a": {"type": "integer"}}})
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


@pytest.fixture(scope="module")
def aimock() -> Iterator[Aimock]:
    with run_aimock(Path(__file__).with_name("aimock.json")) as mock:
        yield mock


def say(text: str, **fields: Any) -> ChatRequest:
    messages = (SystemMessage((Text("Be kind."),)), UserMessage((Text(text),)))
    return ChatRequest(model="main", messages=messages, **fields)


def ask(aimock: Aimock, *requests: ChatRequest) -> list[tuple[ChatAnswer, ChatAnswer]]:
    """Each answer as a whole and streamed."""

    async def run() -> list[tuple[ChatAnswer, ChatAnswer]]:
        config = ProviderConfig("gemini", f"{aimock.url}/v1beta", "canary-key", {"networks": ["127.0.0.0/8"]})
        provider = GeminiProvider(config)
        model = provider.get_chat_model("gemini-2.5-flash")
        try:
            return [(await model.generate(each), await collect_answer(model.stream(each))) for each in requests]
        finally:
            await provider.aclose()

    aimock.clear_journal()
    return anyio.run(run)


@pytest.mark.req("LLM-5", "LLM-10")
def test_a_text_of_the_mock_is_the_same_in_both_ways_with_its_usage(aimock: Aimock) -> None:
    [(whole, streamed)] = ask(aimock, say("hello"))

    assert streamed == whole
    assert whole.text == "Größe 中 😀 <think> is fine, and this is long enough to come in several pieces."
    assert whole.finish_reason is FinishReason.STOP
    assert whole.usage is not None
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (11, 5)


@pytest.mark.req("LLM-2", "LLM-3", "LLM-5")
def test_two_proposals_of_the_mock_are_there_none_is_run_and_their_answers_go_on(aimock: Aimock) -> None:
    first = say("pay both", tools=(PAY,))

    [(whole, streamed)] = ask(aimock, first)
    assert streamed.proposals == whole.proposals
    assert [(each.name, each.arguments) for each in whole.proposals] == [("bank_pay", {"a": 1}), ("bank_pay", {"a": 2})]
    assert whole.finish_reason is streamed.finish_reason is FinishReason.TOOL
    assert len(aimock.read_journal()) == 2

    results = [ToolMessage(call_id=each.id, segments=(Text("Paid."),)) for each in whole.proposals]
    talk = (*first.messages, whole.build_message(), *results, UserMessage((Text("hello"),)))
    [(second, _)] = ask(aimock, ChatRequest(model="main", messages=talk, tools=(PAY,)))
    assert second.text.startswith("Größe")


@pytest.mark.req("LLM-4")
def test_a_document_of_the_mock_is_read_as_a_value(aimock: Aimock) -> None:
    [(whole, _)] = ask(aimock, say("document", response_format=SchemaFormat(SCHEMA)))

    assert whole.output == {"x": "y"}


FAILURES = {
    "too long": ContextOverflow,
    "no money": ProviderQuotaExhausted,
    "wrong key": ProviderKeyRefused,
    "busy": ProviderUnavailable,
}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("text", FAILURES)
def test_an_error_of_the_mock_has_its_problem_on_geminis_wire_and_is_asked_for_once(aimock: Aimock, text: str) -> None:
    with pytest.raises(Problem) as found:
        ask(aimock, say(text))

    assert type(found.value) is FAILURES[text]
    assert len(aimock.read_journal()) == 1
