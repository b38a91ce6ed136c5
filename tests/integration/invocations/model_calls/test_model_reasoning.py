"""Model reasoning: is a model asked to reason as its caller wants, and does what its provider wants back of it come back by
every door?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from llm.answers import ChatDelta, FinishReason
from llm.messages import AssistantMessage, ProviderState
from llm.usage import Usage
from tests.support.calls import assert_problem
from tests.support.model_calls import MODEL, ask, leaf_of, say
from tests.support.served_formats import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
STATE = ProviderState("anthropic", [{"content": "", "signature": "c2VhbGVk", "part_kind": "thinking"}])
THOUGHT = (ChatDelta(text="Hm"), ChatDelta(finish_reason=FinishReason.STOP, usage=Usage(7, 3), provider_state=STATE))


def talk_on_in_own(caller: Caller) -> Any:
    first = ask(caller, say("Hi")).json()["data"]
    said = {"role": "assistant", "segments": [{"type": "text", "text": first["text"]}]}
    asked = say("Hi")["messages"] + [said | {"provider_state": first["provider_state"]}] + say("And?")["messages"]
    return ask(caller, {"messages": asked})


def talk_on_in_chat(caller: Caller) -> Any:
    asked = [{"role": "user", "content": "Hi"}]
    first = caller.ask(CHAT, {"model": MODEL, "messages": asked}).json()["choices"][0]["message"]
    return caller.ask(CHAT, {"model": MODEL, "messages": [*asked, first, {"role": "user", "content": "And?"}]})


def talk_on_in_responses(caller: Caller) -> Any:
    asked = [{"role": "user", "content": "Hi"}]
    first = caller.ask("/v1/responses", {"model": MODEL, "input": asked}).json()["output"]
    return caller.ask("/v1/responses", {"model": MODEL, "input": [*asked, *first, {"role": "user", "content": "And?"}]})


def talk_on_in_messages(caller: Caller) -> Any:
    asked = [{"role": "user", "content": "Hi"}]
    first = caller.ask("/v1/messages", {"model": MODEL, "max_tokens": 50, "messages": asked}).json()["content"]
    more = [*asked, {"role": "assistant", "content": first}, {"role": "user", "content": "And?"}]
    return caller.ask("/v1/messages", {"model": MODEL, "max_tokens": 50, "messages": more})


def talk_on_in_contents(caller: Caller) -> Any:
    address, asked = f"/v1beta/models/{MODEL}:generateContent", [{"role": "user", "parts": [{"text": "Hi"}]}]
    first = caller.ask(address, {"contents": asked}).json()["candidates"][0]["content"]
    return caller.ask(address, {"contents": [*asked, first, {"role": "user", "parts": [{"text": "And?"}]}]})


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    "talk_on", [talk_on_in_own, talk_on_in_chat, talk_on_in_responses, talk_on_in_messages, talk_on_in_contents]
)
def test_what_a_provider_wants_back_comes_back_unread(
    talk_on: Callable[[Caller], Any], caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [THOUGHT] * 2

    answer = talk_on(caller)

    assert answer.status_code == 200, answer.content
    _, second = bench.requests
    [back] = [each for each in second.messages if isinstance(each, AssistantMessage)]
    assert (back.provider_state, back.segments[0].text) == (STATE, "Hm")


@pytest.mark.req("LLM-4")
def test_what_a_model_does_not_take_is_said_or_refused_and_never_dropped_in_silence(
    caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(features={"reasoning_effort": "warned", "reasoning_tokens": "warned", "top_k": "warned"})
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 20}, "output_config": {"effort": "low"}, "top_k": 3}
    body = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}], **thinking}

    warned = caller.ask("/v1/messages", body)
    strict = caller.ask("/v1/messages", body | {"hub": {"strict_parameters": True}})

    places = [each.partition(":")[0] for each in warned.json()["hub"]["warnings"]]
    assert places == ["/top_k", "/reasoning_effort", "/reasoning_tokens"]
    assert strict.headers["X-Hub-Reason"] == "LLM.UNSUPPORTED"


@pytest.mark.req("LLM-4")
def test_tokens_of_reasoning_are_reserved_with_those_of_the_answer(
    caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(max_output_tokens=1000, default_output_tokens=100)

    ask(caller, say("Hi", reasoning_tokens=300))
    too_many = ask(caller, say("Hi", reasoning_tokens=300, max_tokens=300))

    [request] = bench.requests
    assert (request.reasoning_tokens, request.max_tokens) == (300, 400)
    assert leaf_of(Invocation.objects.earliest("created_at"), "invocation.began")["model"]["output_tokens"] == 400
    problem = assert_problem(too_many, 422, "SCHEMA.VALIDATION_FAILED")["error"]
    assert problem["details"]["findings"][0]["pointer"] == "/reasoning_tokens"
