"""Model retries: is a provider asked again when that can help, after the time that it names, and never once it has begun to
answer?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from llm.answers import ChatDelta
from llm.messages import Text, UserMessage
from llm.problems import (
    ContextOverflow,
    ModelTimedOut,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.requests import ChatRequest
from llm.retries import RetriedChat, RetryBounds, RetryPlan
from tests.support.scripted_models import ScriptedChat, text_answer

if TYPE_CHECKING:
    from kernel.problems import Problem


HELLO = ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),))
ANSWER = text_answer("Hello")


def ask(model: ScriptedChat, limits: RetryBounds | None = None) -> tuple[str, list[float]]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    retried = RetriedChat(model, RetryPlan(limits, sleep=sleep, chance=lambda: 0.5))
    return anyio.run(retried.generate, HELLO).text, waited


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "problem", [ModelTimedOut(), ProviderRateLimited(), ProviderUnavailable(), StreamTruncated()], ids=type
)
def test_a_provider_that_was_busy_is_asked_again_and_left_alone_for_longer_each_time(problem: Problem) -> None:
    model = ScriptedChat([(problem,), (problem,), ANSWER])

    assert ask(model) == ("Hello", [0.375, 0.75])
    assert model.closed == 3


@pytest.mark.req("LLM-9")
def test_the_time_that_a_provider_names_is_waited_for() -> None:
    model = ScriptedChat([(ProviderRateLimited(retry_after_s=7),), (ProviderUnavailable(retry_after_s=0),), ANSWER])

    assert ask(model) == ("Hello", [7, 0])


@pytest.mark.req("LLM-9")
def test_a_provider_that_wants_to_be_left_alone_for_longer_is() -> None:
    model = ScriptedChat([(ProviderRateLimited(retry_after_s=31),), ANSWER])

    with pytest.raises(ProviderRateLimited) as refused:
        ask(model)
    assert refused.value.retry_after == 31
    assert len(model.requests) == 1


@pytest.mark.req("LLM-9")
def test_a_provider_is_asked_so_often_and_no_more() -> None:
    model = ScriptedChat([(ProviderUnavailable(),)] * 9)

    with pytest.raises(ProviderUnavailable):
        ask(model, RetryBounds(most=3))
    assert len(model.requests) == 4


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "problem",
    [ContextOverflow(), ProviderKeyRefused(), ProviderQuotaExhausted(), ProviderAnswerUnreadable()],
    ids=type,
)
def test_what_another_try_does_not_help_is_not_tried(problem: Problem) -> None:
    model = ScriptedChat([(problem,), ANSWER])

    with pytest.raises(type(problem)):
        ask(model)
    assert len(model.requests) == 1


@pytest.mark.req("LLM-9")
def test_an_answer_that_was_begun_is_not_asked_for_again() -> None:
    model = ScriptedChat([(ChatDelta(text="Hel"), ProviderUnavailable()), ANSWER])

    with pytest.raises(ProviderUnavailable):
        ask(model)
    assert len(model.requests) == 1
