"""Prefixed models: is a prefix before everything, and nowhere in what is said of a request?"""

from __future__ import annotations

import anyio
import pytest

from llm.messages import ImageRef, SystemMessage, Text, UserMessage
from llm.model_features import ModelFeatures
from llm.prefixed_models import PrefixedChat
from llm.problems import ParameterUnsupported
from llm.requests import ChatRequest
from tests.support.scripted_models import ScriptedChat, text_answer

PICTURE = ImageRef(id="art_01kc8q4m7tfxz000000000000a", media_type="image/png", size_bytes=3, width=1, height=1)
OWN = SystemMessage((Text("Be brief."),))
HELLO = UserMessage((Text("Hi"),))


@pytest.mark.req("LLM-12")
def test_it_is_the_first_message_and_the_rest_stays_as_it_was() -> None:
    inner = ScriptedChat([text_answer("Hello")])

    answer = anyio.run(PrefixedChat(inner, "Be careful.").generate, ChatRequest(model="m:n", messages=(OWN, HELLO)))

    assert answer.text == "Hello"
    assert inner.requests[0].messages == (SystemMessage((Text("Be careful."),)), OWN, HELLO)


@pytest.mark.req("LLM-12")
def test_places_in_a_request_are_counted_without_it() -> None:
    inner = ScriptedChat([text_answer("Hello")], features=ModelFeatures())
    request = ChatRequest(model="m:n", messages=(UserMessage((PICTURE,)),))

    with pytest.raises(ParameterUnsupported) as refused:
        anyio.run(PrefixedChat(inner, "Be careful.").generate, request)

    assert refused.value.details["findings"][0]["pointer"] == "/messages/0/segments/0"
    assert inner.requests == []
