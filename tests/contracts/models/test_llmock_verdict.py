"""llmock: does a judge that others wrote find that our client handles each fault well?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from llm.messages import Text, UserMessage
from llm.problems import (
    ContextOverflow,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.requests import ChatRequest
from llm.retries import RetriedChat, RetryBounds, RetryPlan
from tests.support.provider_wires import WIRES, connect

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

    from kernel.problems import Problem
    from llm.answers import ChatAnswer


HELLO = ChatRequest(model="main", messages=(UserMessage((Text("Hello there"),)),))
PREFIX = {"messages": "/anthropic"}
QUICK = RetryBounds(first_wait_s=0.1)


def ask(llmock: LLMock, name: str) -> ChatAnswer:
    async def run() -> ChatAnswer:
        model: Any = connect(WIRES[name], llmock.url + PREFIX.get(name, ""))
        try:
            answer: ChatAnswer = await RetriedChat(model, RetryPlan(QUICK)).generate(HELLO)
            return answer
        finally:
            await model.http.aclose()

    return anyio.run(run)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("name", WIRES)
def test_an_answer_without_faults_is_whole(llmock: LLMock, name: str) -> None:
    llmock.reply("All is well.")

    assert ask(llmock, name).text == "All is well."
    llmock.assert_resilient(strict=True)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("name", WIRES)
def test_a_provider_that_names_a_time_is_asked_again_after_it(llmock: LLMock, name: str) -> None:
    llmock.rate_limit(retry_after=1.0)

    assert ask(llmock, name).text
    assert len(llmock.requests) == 2
    llmock.assert_resilient(strict=True)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("name", WIRES)
def test_a_provider_that_is_away_is_asked_three_times_in_growing_steps(llmock: LLMock, name: str) -> None:
    llmock.outage()

    with pytest.raises(ProviderUnavailable):
        ask(llmock, name)
    assert len(llmock.requests) == 3
    llmock.assert_resilient(strict=True)


BREAKS = {"truncate": StreamTruncated, "corrupt": ProviderAnswerUnreadable, "disconnect": StreamTruncated}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("name", WIRES)
def test_a_stream_that_breaks_is_told_and_whoever_asks_again_gets_the_whole(
    llmock: LLMock, name: str, fault: str
) -> None:
    """The judge warns of a broken line that nobody left for: it had sent all that came after it before we could."""
    getattr(llmock, fault)(after_chunks=6)
    llmock.reply("A long answer of many words, which comes in several pieces.", times=None)

    with pytest.raises(BREAKS[fault]):
        ask(llmock, name)
    assert len(llmock.requests) == 1
    assert ask(llmock, name).text == "A long answer of many words, which comes in several pieces."
    llmock.assert_resilient(strict=fault != "corrupt")


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("status", "problem"), [(401, ProviderKeyRefused), (404, ProviderAnswerUnreadable)])
@pytest.mark.parametrize("name", WIRES)
def test_what_another_try_does_not_help_is_asked_for_once(
    llmock: LLMock, name: str, status: int, problem: type[Problem]
) -> None:
    llmock.fail(status)

    with pytest.raises(problem):
        ask(llmock, name)
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("name", WIRES)
def test_a_conversation_that_is_too_long_is_told_as_that(llmock: LLMock, name: str) -> None:
    llmock.context_overflow()

    with pytest.raises(ContextOverflow):
        ask(llmock, name)
    llmock.assert_resilient(strict=True)
