"""Model features: is every part of a request passed on, warned about or refused, and nothing dropped in silence?"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import anyio
import pytest

from llm.answers import ParameterWarning
from llm.messages import AssistantMessage, AttachmentRef, AudioRef, ImageRef, Text, ToolMessage, UserMessage
from llm.model_features import (
    CHAT_PARAMETERS,
    CONTENT,
    EMBED_PARAMETERS,
    ModelFeatures,
    Treatment,
    adapt_chat_request,
    adapt_embed_request,
)
from llm.problems import ParameterUnsupported
from llm.requests import ChatRequest, EmbedRequest, JsonFormat, SchemaFormat
from tests.support.scripted_models import EVERYTHING, ScriptedChat, text_answer
from unitools.calls import ToolCall, ToolSpec

ART = "art_01kc8q4m7tfxz000000000000a"
PLAIN = ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),))
GIVEN: dict[str, Any] = {
    "temperature": 0.0,
    "top_p": 0.5,
    "top_k": 5,
    "max_tokens": 10,
    "reasoning_effort": "none",
    "reasoning_tokens": 4,
    "stop": ("END",),
    "seed": 0,
    "frequency_penalty": 0.0,
    "presence_penalty": 1.0,
    "logit_bias": {"5": 1.0},
    "tool_choice": "required",
    "parallel_calls": False,
    "cache_hint": "manual",
}
IMAGE = ImageRef(id=ART, media_type="image/png", size_bytes=1, width=1, height=1)
AUDIO = AudioRef(id=ART, media_type="audio/wav", size_bytes=1, seconds=1.0)
FILED = AttachmentRef(id=ART, media_type="application/pdf", size_bytes=1)
TOOL = ToolSpec("load", "Load it.", {"type": "object"})
QUESTIONS: dict[str, tuple[ChatRequest, str]] = {
    "tools": (replace(PLAIN, tools=(TOOL,)), "/tools"),
    "json": (replace(PLAIN, response_format=JsonFormat()), "/response_format"),
    "schema": (replace(PLAIN, response_format=SchemaFormat({})), "/response_format"),
    "image_ref": (replace(PLAIN, messages=(UserMessage((Text("Hi"), IMAGE)),)), "/messages/0/segments/1"),
    "audio_ref": (replace(PLAIN, messages=(UserMessage((AUDIO,)),)), "/messages/0/segments/0"),
    "attachment_ref": (replace(PLAIN, messages=(UserMessage((FILED,)),)), "/messages/0/segments/0"),
}


@pytest.mark.req("LLM-4")
def test_the_tables_have_every_part_of_a_request() -> None:
    """A parameter that is added to requests and not here would be dropped by the first adapter that does not know it."""
    of_chat = {each.name for each in fields(ChatRequest)}
    of_embed = {each.name for each in fields(EmbedRequest)}
    for_others = {"idempotency_key", "allow_sensitive", "strict_parameters"}

    assert of_chat - for_others == {*CHAT_PARAMETERS, "model", "messages", "tools", "response_format"}
    assert of_embed - for_others == {*EMBED_PARAMETERS, "model", "items", "normalize"}
    assert set(GIVEN) == set(CHAT_PARAMETERS)
    assert set(QUESTIONS) == set(CONTENT)
    assert all(getattr(PLAIN, name) == without for name, without in CHAT_PARAMETERS.items())


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("treatment", [*Treatment, None])
@pytest.mark.parametrize("name", CHAT_PARAMETERS)
def test_a_parameter_is_passed_or_warned_about_or_refused(name: str, treatment: Treatment | None, strict: bool) -> None:
    request = replace(PLAIN, **{name: GIVEN[name]}, strict_parameters=strict)
    model = ModelFeatures({name: treatment} if treatment else {})

    if treatment is Treatment.REFUSED or (strict and treatment is not Treatment.PASSED):
        with pytest.raises(ParameterUnsupported) as refused:
            adapt_chat_request(request, model)
        assert [each["pointer"] for each in refused.value.details["findings"]] == [f"/{name}"]
        return
    adapted, warnings = adapt_chat_request(request, model)
    if treatment is Treatment.PASSED:
        assert (adapted, warnings) == (request, ())
    else:
        assert adapted == PLAIN
        assert warnings == (ParameterWarning(f"/{name}", f"The model does not take {name}. It was left out."),)


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", CONTENT)
def test_content_is_passed_or_refused_and_never_left_out(name: str, strict: bool) -> None:
    question, pointer = QUESTIONS[name]
    question = replace(question, strict_parameters=strict)

    assert adapt_chat_request(question, ModelFeatures.passing(name)) == (question, ())
    with pytest.raises(ParameterUnsupported) as refused:
        adapt_chat_request(question, ModelFeatures.passing(*set(CONTENT) - {name}))
    assert [each["pointer"] for each in refused.value.details["findings"]] == [pointer]


@pytest.mark.req("LLM-2")
def test_a_picture_in_a_result_of_a_tool_is_content_too() -> None:
    call = ToolCall("c", "load", {})
    messages = (AssistantMessage(proposals=(call,)), ToolMessage(call_id="c", segments=(IMAGE,)))

    with pytest.raises(ParameterUnsupported) as refused:
        adapt_chat_request(replace(PLAIN, messages=messages), ModelFeatures())
    assert [each["pointer"] for each in refused.value.details["findings"]] == ["/messages/1/segments/0"]


@pytest.mark.req("LLM-4")
def test_everything_that_a_model_does_not_take_is_named_at_once() -> None:
    request = replace(PLAIN, **GIVEN)

    _, warnings = adapt_chat_request(request, ModelFeatures())
    assert [each.pointer for each in warnings] == [f"/{name}" for name in CHAT_PARAMETERS]
    with pytest.raises(ParameterUnsupported) as refused:
        adapt_chat_request(replace(request, strict_parameters=True), ModelFeatures())
    assert [each["pointer"] for each in refused.value.details["findings"]] == [f"/{name}" for name in CHAT_PARAMETERS]


@pytest.mark.req("LLM-4")
def test_more_tokens_than_the_model_writes_are_lowered_with_a_warning_or_refused() -> None:
    model = ModelFeatures.passing("max_tokens", max_output_tokens=100)
    within, beyond = replace(PLAIN, max_tokens=100), replace(PLAIN, max_tokens=101)

    assert adapt_chat_request(within, model) == (within, ())
    adapted, warnings = adapt_chat_request(beyond, model)
    assert adapted == within
    assert warnings == (
        ParameterWarning("/max_tokens", "The model writes at most 100 tokens. The limit was lowered to that."),
    )
    with pytest.raises(ParameterUnsupported):
        adapt_chat_request(replace(beyond, strict_parameters=True), model)


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    "table",
    [{"temprature": Treatment.PASSED}, {"tools": Treatment.WARNED}, {"image_ref": Treatment.WARNED}],
)
def test_a_table_that_would_drop_content_or_names_nothing_is_refused(table: dict[str, Treatment]) -> None:
    with pytest.raises(ValueError, match=r"No part of a request|is content"):
        ModelFeatures(table)


@pytest.mark.req("LLM-6")
def test_parameters_of_embeddings_are_treated_alike() -> None:
    request = EmbedRequest(model="e5", items=("a",), pooling="mean", kind="query")

    assert adapt_embed_request(request, EVERYTHING) == (request, ())
    adapted, warnings = adapt_embed_request(request, ModelFeatures.passing("kind"))
    assert (adapted.pooling, adapted.kind, [each.pointer for each in warnings]) == (None, "query", ["/pooling"])
    with pytest.raises(ParameterUnsupported):
        adapt_embed_request(replace(request, strict_parameters=True), ModelFeatures.passing("kind"))


@pytest.mark.req("LLM-4")
def test_the_answer_and_the_stream_say_what_was_left_out_and_the_provider_does_not_see_it() -> None:
    model = ScriptedChat([text_answer("Hi")] * 2, ModelFeatures())
    request = replace(PLAIN, seed=7)

    async def first_piece() -> tuple[ParameterWarning, ...]:
        return (await anext(model.stream(request))).warnings

    expected = (ParameterWarning("/seed", "The model does not take seed. It was left out."),)
    assert anyio.run(model.generate, request).warnings == expected
    assert anyio.run(first_piece) == expected
    assert model.requests == [PLAIN]


@pytest.mark.req("LLM-4")
def test_what_is_refused_never_reaches_the_provider() -> None:
    model = ScriptedChat([text_answer("Hi")], ModelFeatures())

    with pytest.raises(ParameterUnsupported):
        model.stream(replace(PLAIN, seed=7, strict_parameters=True))
    assert model.requests == []
