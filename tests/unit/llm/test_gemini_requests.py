"""Gemini requests: is a request the same in Gemini's words, and does what Gemini signed go back to where it stood?"""

from __future__ import annotations

from typing import Any

import pytest

from llm.messages import (
    AssistantMessage,
    AttachmentRef,
    ImageRef,
    Message,
    ProviderState,
    Segment,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
)
from llm.problems import ParameterUnsupported
from llm.providers.gemini_requests import build_body, list_reasoning, render_tools
from llm.requests import ChatRequest, JsonFormat, NamedTool, SchemaFormat
from llm.untrusted_texts import delimit_result
from unitools.calls import ToolCall, ToolSpec

ART = "art_01kc8q4m7tfxz000000000000a"
PICTURE = ImageRef(id=ART, media_type="image/png", size_bytes=3, width=1, height=1)
LETTER = AttachmentRef(id=ART, media_type="application/pdf", size_bytes=3, name="letter.pdf")
WEATHER = ToolSpec(
    "acme.weather.get", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}}
)
HI = UserMessage((Text("Hi"),))


def inline(segment: Segment) -> dict[str, Any]:
    assert not isinstance(segment, Text)
    return {"inlineData": {"mimeType": segment.media_type, "data": "AAAA"}}


def body_of(*messages: Message, **given: Any) -> dict[str, Any]:
    request = ChatRequest(model="google:gemini-2.5-flash", messages=messages, **given)
    tools = render_tools(request.tools, "gemini-2.5-flash")
    return build_body(request, tools, inline)


@pytest.mark.req("LLM-2")
def test_messages_of_the_system_stand_apart_and_all_others_in_their_order() -> None:
    system = SystemMessage((Text("Be brief."), Text("Be kind.")))
    late = SystemMessage((Text("And polite."),))
    said = AssistantMessage((Text("Hello."), Text(" What?")))

    body = body_of(system, HI, said, late, UserMessage((Text("This:"), PICTURE, LETTER)))

    assert body["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "Be kind."}, {"text": "And polite."}]
    }
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": "Hello. What?"}]},
        {
            "role": "user",
            "parts": [
                {"text": "This:"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
            ],
        },
    ]
    assert set(body) == {"systemInstruction", "contents"}


@pytest.mark.req("LLM-4")
def test_parameters_have_the_names_that_gemini_has_for_them() -> None:
    given = {
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 40,
        "max_tokens": 9,
        "seed": 0,
        "frequency_penalty": 0.0,
        "presence_penalty": 1.0,
    }

    assert body_of(HI, stop=("END",), **given)["generationConfig"] == {
        "temperature": 0.0,
        "topP": 0.5,
        "topK": 40,
        "maxOutputTokens": 9,
        "seed": 0,
        "frequencyPenalty": 0.0,
        "presencePenalty": 1.0,
        "stopSequences": ["END"],
    }
    assert "generationConfig" not in body_of(HI)


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("given", "thinking"),
    [
        ({"reasoning_tokens": 2048}, {"thinkingBudget": 2048}),
        ({"reasoning_effort": "low"}, {"thinkingLevel": "low"}),
        ({"reasoning_effort": "auto"}, None),
    ],
)
def test_how_much_it_thinks_is_said_in_geminis_words(given: dict[str, Any], thinking: dict[str, Any] | None) -> None:
    assert body_of(HI, temperature=0.0, **given)["generationConfig"].get("thinkingConfig") == thinking


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gemini-2.5-pro", ("reasoning_tokens",)),
        ("models/gemini-3-flash-preview", ("reasoning_effort",)),
        ("gemini-4-argon", ("reasoning_effort",)),
        ("gemini-2.0-flash", ()),
        ("gemini-2.5-flash-image", ()),
        ("gemma-3-27b-it", ()),
    ],
)
def test_a_model_is_told_only_what_it_takes_of_how_much_it_thinks(model: str, takes: tuple[str, ...]) -> None:
    assert list_reasoning(model) == takes


@pytest.mark.req("LLM-3", "LLM-4")
def test_that_the_model_has_to_call_a_tool_is_said_in_geminis_words() -> None:
    any_tool = body_of(HI, tools=(WEATHER,), tool_choice="required")
    this_tool = body_of(HI, tools=(WEATHER,), tool_choice=NamedTool("acme.weather.get"))

    assert any_tool["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    assert this_tool["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["acme_weather_get"]}
    }
    assert "toolConfig" not in body_of(HI, tools=(WEATHER,))


@pytest.mark.req("LLM-4")
def test_json_is_asked_for_by_its_schema_without_references_where_that_can_be() -> None:
    name = {"type": "string"}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"name": {"$ref": "#/$defs/name"}},
        "$defs": {"name": name},
    }
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}}

    wanted = body_of(HI, response_format=SchemaFormat(schema))["generationConfig"]
    assert wanted["responseMimeType"] == "application/json"
    assert wanted["responseJsonSchema"]["properties"] == {"name": name}
    assert "$schema" not in wanted["responseJsonSchema"]
    assert body_of(HI, response_format=SchemaFormat(tree))["generationConfig"]["responseJsonSchema"] == tree
    assert body_of(HI, response_format=JsonFormat())["generationConfig"] == {"responseMimeType": "application/json"}


@pytest.mark.req("LLM-3")
def test_calls_and_their_answers_go_back_together_under_the_names_that_the_model_knows() -> None:
    calls = (
        ToolCall("call_1", "acme.weather.get", {"city": "Rome"}, provider_id="g1"),
        ToolCall("call_2", "acme.weather.get", {"city": "Oslo"}),
    )
    answers = (
        ToolMessage(call_id="call_2", segments=(Text("snow"), PICTURE)),
        ToolMessage(call_id="call_1", segments=(Text("no such city"),), is_error=True),
    )
    body = body_of(HI, AssistantMessage((Text("Let me see."),), calls), *answers, HI, tools=(WEATHER,))

    name = "acme_weather_get"
    assert [each["name"] for each in body["tools"][0]["functionDeclarations"]] == [name]
    assert body["contents"][1:3] == [
        {
            "role": "model",
            "parts": [
                {"text": "Let me see."},
                {"functionCall": {"name": name, "args": {"city": "Rome"}, "id": "g1"}},
                {"functionCall": {"name": name, "args": {"city": "Oslo"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": name, "response": {"output": delimit_result(answers[0])}}},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"functionResponse": {"name": name, "id": "g1", "response": {"error": delimit_result(answers[1])}}},
            ],
        },
    ]
    assert body["contents"][3] == {"role": "user", "parts": [{"text": "Hi"}]}


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("state", "signatures"),
    [
        (ProviderState("gemini", {"0": "S0", "text": "ST"}), ("ST", "S0", None)),
        (ProviderState("gemini", {"1": "S1", "0": 5}), (None, None, "S1")),
        (ProviderState("gemini", ["S"]), (None, None, None)),
        (ProviderState("openai", {"0": "S0"}), (None, None, None)),
        (None, (None, None, None)),
    ],
)
def test_a_signature_goes_back_to_the_part_that_it_came_with_and_to_gemini_only(
    state: ProviderState | None, signatures: tuple[str | None, ...]
) -> None:
    calls = tuple(ToolCall(f"call_{n}", "acme.weather.get", {}) for n in range(2))
    answers = [ToolMessage(call_id=call.id, segments=(Text("ok"),)) for call in calls]

    body = body_of(HI, AssistantMessage((Text("So:"),), calls, state), *answers, tools=(WEATHER,))

    assert tuple(part.get("thoughtSignature") for part in body["contents"][1]["parts"]) == signatures


@pytest.mark.req("LLM-4")
def test_a_tool_that_gemini_cannot_be_told_of_refuses_the_request() -> None:
    with pytest.raises(ParameterUnsupported) as refused:
        render_tools([ToolSpec("a b", "", {}), ToolSpec("a_b", "", {})], "gemini-2.5-flash")
    assert [each["pointer"] for each in refused.value.details["findings"]] == ["/tools"]
