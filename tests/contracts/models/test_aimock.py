"""aimock: do our providers speak with a mock that others wrote as the wires have it: the same answer in both ways, nothing lost
or run?
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import Problem
from llm.answers import FinishReason
from llm.messages import SystemMessage, Text, ToolMessage, UserMessage
from llm.problems import ContextOverflow, ProviderKeyRefused, ProviderQuotaExhausted, ProviderUnavailable
from llm.requests import ChatRequest, SchemaFormat
from llm.streams import collect_answer
from tests.support.aimock import Aimock, run_aimock
from tests.support.provider_wires import WIRES, connect
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm.answers import ChatAnswer

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": False}
PAY = ToolSpec("bank.pay", "Pay somebody.", {"type": "object", "properties": {"a": {"type": "integer"}}})
GIVEN: dict[str, Any] = {
    "temperature": 0.25,
    "top_p": 0.75,
    "max_tokens": 4321,
    "stop": ("END",),
    "seed": 77,
    "frequency_penalty": 0.125,
    "presence_penalty": -0.375,
    "logit_bias": {"5": 1.5},
}
# Parameters in the words of the wire, as far as the journal has them: it keeps of Responses and Messages what Chat Completions has too
# (of all of them: test_provider_answers.py). What a wire has no word for is warned about.
CHAT = {**GIVEN, "stop": ["END"]}
WORDS = {
    "chat": {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in CHAT.items()},
    "responses": {"temperature": 0.25},
    "messages": {"temperature": 0.25, "max_tokens": 4321},
    "compatible": CHAT,
}
WARNED: dict[str, set[str]] = {
    "chat": set(),
    "responses": {"stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias"},
    "messages": {"seed", "frequency_penalty", "presence_penalty", "logit_bias"},
    "compatible": set(),
}


@pytest.fixture(scope="module")
def aimock() -> Iterator[Aimock]:
    with run_aimock(Path(__file__).with_name("aimock.json")) as mock:
        yield mock


def say(text: str, **fields: Any) -> ChatRequest:
    messages = (SystemMessage((Text("Be kind."),)), UserMessage((Text(text),)))
    return ChatRequest(model="main", messages=messages, **fields)


def ask(aimock: Aimock, name: str, *requests: ChatRequest) -> tuple[list[tuple[ChatAnswer, ChatAnswer]], list[Any]]:
    """Each answer as a whole and streamed, and the bodies that the mock was sent."""

    async def run() -> list[tuple[ChatAnswer, ChatAnswer]]:
        model = connect(WIRES[name], aimock.url)
        try:
            return [(await model.generate(each), await collect_answer(model.stream(each))) for each in requests]
        finally:
            await model.http.aclose()  # type: ignore[attr-defined]

    aimock.clear_journal()
    answers = anyio.run(run)
    return answers, [each["body"] for each in aimock.read_journal()]


@pytest.mark.req("LLM-5", "LLM-7")
@pytest.mark.parametrize("name", WIRES)
def test_a_text_is_the_same_streamed_and_whole_and_its_usage_is_the_mocks(aimock: Aimock, name: str) -> None:
    [(whole, streamed)], _ = ask(aimock, name, say("hello"))

    assert streamed == whole
    assert whole.text == "Größe 中 😀 <think> is fine, and this is long enough to come in several pieces."
    assert whole.finish_reason is FinishReason.STOP
    assert whole.usage is not None
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (11, 5)
    assert whole.model


@pytest.mark.req("LLM-2", "LLM-3", "LLM-5")
@pytest.mark.parametrize("name", WIRES)
def test_two_parallel_proposals_are_there_and_none_is_run(aimock: Aimock, name: str) -> None:
    """Had a tool been run, its result would have been sent with another request."""
    [(whole, streamed)], bodies = ask(aimock, name, say("pay both", tools=(PAY,)))

    assert streamed.proposals == whole.proposals
    assert [(each.name, each.arguments) for each in whole.proposals] == [("bank.pay", {"a": 1}), ("bank.pay", {"a": 2})]
    assert len({each.id for each in whole.proposals}) == 2
    assert whole.finish_reason is streamed.finish_reason is FinishReason.TOOL
    assert len(bodies) == 2


@pytest.mark.req("LLM-1", "LLM-3")
@pytest.mark.parametrize("name", WIRES)
def test_the_results_of_proposals_go_on_with_the_conversation(aimock: Aimock, name: str) -> None:
    first = say("pay both", tools=(PAY,))
    [(whole, _)], _ = ask(aimock, name, first)
    results = [ToolMessage(call_id=each.id, segments=(Text("Paid."),)) for each in whole.proposals]
    talk = (*first.messages, whole.build_message(), *results, UserMessage((Text("hello"),)))

    [(second, _)], _ = ask(aimock, name, replace(first, messages=talk))

    assert second.text.startswith("Größe")


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize("name", WIRES)
def test_the_journal_has_each_parameter_in_the_words_of_the_wire_and_the_answer_a_warning_for_the_rest(
    aimock: Aimock, name: str
) -> None:
    [(whole, _)], (body, _) = ask(aimock, name, say("hello", **GIVEN))

    words = WORDS[name]
    assert {each: body.get(each) for each in words} == words
    assert {each.pointer.removeprefix("/") for each in whole.warnings} == WARNED[name]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("name", WIRES)
def test_json_by_a_schema_comes_back_as_a_value(aimock: Aimock, name: str) -> None:
    [(whole, _)], (body, _) = ask(aimock, name, say("document", response_format=SchemaFormat(SCHEMA)))

    assert whole.output == {"x": "y"}
    if "/chat/" in WIRES[name].path:
        assert body["response_format"]["json_schema"] == {"name": "answer", "schema": SCHEMA, "strict": True}


FAILURES = {
    "too long": ContextOverflow,
    "no money": ProviderQuotaExhausted,
    "wrong key": ProviderKeyRefused,
    "busy": ProviderUnavailable,
}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("text", FAILURES)
@pytest.mark.parametrize("name", WIRES)
def test_an_error_of_the_mock_is_a_problem_by_its_name_and_is_asked_for_once(
    aimock: Aimock, name: str, text: str
) -> None:
    with pytest.raises(Problem) as found:
        ask(aimock, name, say(text))

    assert type(found.value) is FAILURES[text]
    assert len(aimock.read_journal()) == 1
