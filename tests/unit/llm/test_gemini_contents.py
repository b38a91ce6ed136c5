"""Gemini contents: is a body of Google's read as what the hub asks, and is what the hub answers written as Google has it?"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kernel.problems import Problem, SchemaInvalid
from llm.documents import read_document
from llm.model_features import Treatment
from llm.problems import ParameterUnsupported
from llm.requests import ChatRequest
from llm.served.gemini_requests import GENERATION, PARAMETERS
from llm.served.parameters import Findings, read_parameters
from tests.support.drawn_pictures import draw, to_base64
from tests.support.gemini_bodies import CONTENTS, HI, find_pointers, stream
from tests.support.served_answers import ABOUT, ANSWERS, STATE, build_answer
from unitools.calls import ToolSpec

WEATHER = {"name": "weather", "description": "Now", "parametersJsonSchema": {"type": "object"}}
SHOWN = [{"functionDeclarations": [WEATHER, WEATHER | {"name": "tide"}]}]


def read(contents: Any = HI, **more: Any) -> Any:
    return CONTENTS.read({"contents": contents, **more})


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **more}}


def answer(name: str, response: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **more}}


@pytest.mark.req("LLM-2")
def test_a_conversation_is_read_with_its_instruction_first_and_answers_of_functions_as_messages() -> None:
    turns = [
        user({"text": "Pay"}, {"text": "now"}),
        model({"text": "Two "}),
        model({"text": "calls"}, call("pay", id="c1", args={"to": "Zoë"})),
        model(call("pay", id="c2")),
        user(answer("pay", {"output": "paid"}, id="c1"), answer("pay", {"error": "no"}, id="c2"), {"text": "And now?"}),
    ]
    instruction = {"role": "system", "parts": [{"text": "Be brief"}, {"text": "Be kind"}]}

    asked = read(turns, system_instruction=instruction)

    assert asked.arguments["messages"] == [
        {"role": "system", "segments": [text("Be brief"), text("Be kind")]},
        {"role": "user", "segments": [text("Pay"), text("now")]},
        {
            "role": "assistant",
            "segments": [text("Two "), text("calls")],
            "proposals": [
                {"call_id": "c1", "name": "pay", "arguments": {"to": "Zoë"}},
                {"call_id": "c2", "name": "pay", "arguments": {}},
            ],
        },
        {"role": "tool", "call_id": "c1", "segments": [text("paid")], "is_error": False},
        {"role": "tool", "call_id": "c2", "segments": [text("no")], "is_error": True},
        {"role": "user", "segments": [text("And now?")]},
    ]
    assert len(read_document(ChatRequest, asked.arguments | {"model": "main"}).messages) == 6


@pytest.mark.req("LLM-2", "LLM-3")
def test_calls_and_answers_without_ids_find_each_other_by_name_and_order() -> None:
    turns = [
        user({"text": "Pay"}),
        model(call("pay", args={"n": 1}), call("look"), call("pay", args={"n": 2})),
        user(answer("pay", {"output": "one"}), answer("pay", {"output": "two"}), answer("look", {"output": "seen"})),
        model(call("pay", args={"n": 3})),
        user(answer("pay", {"output": "three"})),
    ]

    messages = read(turns).arguments["messages"]

    proposed = {each["call_id"]: each["arguments"].get("n") for m in messages for each in m.get("proposals", [])}
    told = [(proposed[m["call_id"]], m["segments"][0]["text"]) for m in messages if m["role"] == "tool"]
    assert told == [(1, "one"), (2, "two"), (None, "seen"), (3, "three")]
    assert len(proposed) == 4


@pytest.mark.req("LLM-3")
def test_an_answer_to_nothing_is_left_to_the_decision_which_refuses_it() -> None:
    asked = read([*HI, user(answer("pay", {}))])

    with pytest.raises(SchemaInvalid, match="waits for this answer"):
        read_document(ChatRequest, asked.arguments | {"model": "main"})


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("response", "told", "is_error"),
    [
        ({"output": "paid"}, "paid", False),
        ({"output": {"a": [1]}}, '{"a": [1]}', False),
        ({"result": "paid"}, '{"result": "paid"}', False),
        ({"error": "no"}, "no", True),
        ({"error": {"code": 5}, "output": ""}, '{"error": {"code": 5}, "output": ""}', True),
        ({"output": ""}, " ", False),
        ({}, "{}", False),
    ],
)
def test_what_a_function_answered_is_read_as_google_says(response: Any, told: str, is_error: bool) -> None:
    message = read([*HI, model(call("pay")), user(answer("pay", response))]).arguments["messages"][-1]

    assert (message["segments"], message["is_error"]) == ([text(told)], is_error)


@pytest.mark.req("LLM-2")
def test_parameters_are_read_under_the_hubs_names() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    asked = read(
        tools=SHOWN,
        toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
        generationConfig={
            "temperature": 0.5,
            "topP": 1,
            "topK": 40.0,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "seed": 7,
            "presencePenalty": 1,
            "frequencyPenalty": -1,
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
            "thinkingConfig": {"thinkingBudget": 5},
        },
        hub={"user_id": "u-17", "strict_parameters": True},
    )

    assert (asked.model, asked.wants_stream, asked.envelope, asked.warnings) == ("main", False, {"user_id": "u-17"}, ())
    assert asked.own_tools == (
        ToolSpec("weather", "Now", {"type": "object"}),
        ToolSpec("tide", "Now", {"type": "object"}),
    )
    del asked.arguments["messages"]
    assert asked.arguments == {
        "temperature": 0.5,
        "top_p": 1,
        "top_k": 40,
        "max_tokens": 9,
        "stop": ["END"],
        "seed": 7,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "reasoning_tokens": 5,
        "response_format": {"type": "schema", "json_schema": schema},
        "strict_parameters": True,
    }


@pytest.mark.req("LLM-2")
def test_names_may_be_written_with_underscores_but_not_both_ways_at_once() -> None:
    config = {"max_output_tokens": 9, "thinking_config": {"thinking_budget": -1}}
    declared = {"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}

    asked = read(generation_config=config, tools=[declared])

    assert (asked.arguments["max_tokens"], asked.arguments["reasoning_effort"]) == (9, "auto")
    assert [each.name for each in asked.own_tools] == ["f"]
    with pytest.raises(SchemaInvalid, match="stands here twice"):
        read(generation_config=config, generationConfig=config)
    with pytest.raises(SchemaInvalid) as inner:
        read(generationConfig={"top_p": 1, "topP": 1})
    assert find_pointers(inner.value) == ["/generationConfig/topP"]
    with pytest.raises(SchemaInvalid) as twice:
        read([user({"inlineData": {"data": "AAAA", "mimeType": "image/png", "mime_type": "image/png"}})])
    assert find_pointers(twice.value) == ["/contents/0/parts/0/inlineData/mime_type"]


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("config", "shown", "choice"),
    [
        ({"mode": "AUTO"}, ["weather", "tide"], None),
        ({"mode": "MODE_UNSPECIFIED"}, ["weather", "tide"], None),
        ({"mode": "NONE"}, [], None),
        ({"mode": "ANY"}, ["weather", "tide"], "required"),
        ({"mode": "ANY", "allowedFunctionNames": ["tide"]}, ["tide"], {"name": "tide"}),
        ({"mode": "ANY", "allowedFunctionNames": ["tide", "weather"]}, ["weather", "tide"], "required"),
        ({"mode": "ANY", "allowedFunctionNames": ["tide", "nobody"]}, ["tide"], {"name": "nobody"}),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["tide"]}, ["tide"], None),
    ],
)
def test_whether_a_function_has_to_be_called_is_the_hubs_own_choice(config: Any, shown: list[str], choice: Any) -> None:
    asked = read(tools=SHOWN, toolConfig={"functionCallingConfig": config})

    assert ([each.name for each in asked.own_tools], asked.arguments.get("tool_choice")) == (shown, choice)
    assert bool(asked.warnings) == (config["mode"] == "VALIDATED")


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("thinking", "told", "said"),
    [
        ({"thinkingBudget": 0}, {"reasoning_effort": "none"}, 0),
        ({"thinkingBudget": -1, "includeThoughts": False}, {"reasoning_effort": "auto"}, 0),
        ({"thinkingLevel": "high"}, {"reasoning_effort": "high"}, 0),
        ({"thinkingLevel": "LOW", "thinkingBudget": 9}, {"reasoning_effort": "low", "reasoning_tokens": 9}, 0),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, {}, 0),
        ({"includeThoughts": True}, {}, 1),
    ],
)
def test_how_much_the_model_thinks_is_read_as_its_effort(thinking: Any, told: dict[str, Any], said: int) -> None:
    asked = read(generationConfig={"thinkingConfig": thinking})

    assert {name: value for name, value in asked.arguments.items() if name.startswith("reasoning")} == told
    assert len(asked.warnings) == said


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize("table", [PARAMETERS, GENERATION])
def test_each_refused_parameter_is_refused_and_each_warned_one_is_said(table: Any) -> None:
    for each in table:
        findings = Findings()
        given, warnings = read_parameters({each.name: "asked"}, table, findings)
        told = (bool(given), bool(warnings), bool(findings.unsupported))
        assert told == tuple(each.treatment is kind for kind in (Treatment.PASSED, Treatment.WARNED, Treatment.REFUSED))


@pytest.mark.req("LLM-4")
def test_what_changes_nothing_is_left_out_and_said_with_its_place() -> None:
    declared = WEATHER | {"response": {"type": "STRING"}}
    asked = read(
        [user({"text": "Hi", "mediaResolution": {"level": "LOW"}, "partMetadata": {"a": 1}})],
        labels={"run": "7"},
        safetySettings=[{"category": "X", "threshold": "OFF"}],
        tools=[{"functionDeclarations": [declared]}],
        toolConfig={"functionCallingConfig": {"streamFunctionCallArguments": True}},
        generationConfig={"mediaResolution": "MEDIA_RESOLUTION_LOW"},
    )

    assert [each.partition(": ")[0] for each in asked.warnings] == [
        "/labels",
        "/generationConfig/mediaResolution",
        "/safetySettings/0",
        "/tools/0/functionDeclarations/0/response",
        "/toolConfig/functionCallingConfig/streamFunctionCallArguments",
        "/contents/0/parts/0/mediaResolution",
        "/contents/0/parts/0/partMetadata",
    ]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("more", "problem", "pointer"),
    [
        ({"contents": "Hi"}, SchemaInvalid, "/contents"),
        ({"contents": [{"parts": []}]}, SchemaInvalid, "/contents/0/parts"),
        ({"contents": [user({})]}, SchemaInvalid, "/contents/0/parts/0"),
        ({"contents": [user({"text": "a", "inlineData": {"data": ""}})]}, SchemaInvalid, "/contents/0/parts/0"),
        ({"contents": [user({"text": "a", "surprise": 1})]}, SchemaInvalid, "/contents/0/parts/0/surprise"),
        ({"contents": [user(call("f"))]}, SchemaInvalid, "/contents/0/parts/0/functionCall"),
        ({"contents": [model(answer("f", {}))]}, SchemaInvalid, "/contents/0/parts/0"),
        ({"contents": [model({"text": "Hm", "thought": True})]}, SchemaInvalid, "/contents/0/parts/0/thought"),
        (
            {"contents": [user({"executableCode": {"code": "1"}})]},
            SchemaInvalid,
            "/contents/0/parts/0/executableCode",
        ),
        (
            {"contents": [model(call("f", willContinue=True))]},
            SchemaInvalid,
            "/contents/0/parts/0/functionCall/willContinue",
        ),
        ({"systemInstruction": {"parts": [{"inlineData": {}}]}}, SchemaInvalid, "/systemInstruction/parts/0/text"),
        ({"tools": [{"codeExecution": {}}]}, SchemaInvalid, "/tools/0/codeExecution"),
        ({"tools": [{"functionDeclarations": [{}]}]}, SchemaInvalid, "/tools/0/functionDeclarations/0/name"),
        (
            {"tools": [{"functionDeclarations": [WEATHER | {"parameters": {}}]}]},
            SchemaInvalid,
            "/tools/0/functionDeclarations/0/parametersJsonSchema",
        ),
        (
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"properties": {"a": {"not": {}}}}}]}]},
            SchemaInvalid,
            "/tools/0/functionDeclarations/0/parameters/properties/a/not",
        ),
        (
            {"tools": [{"functionDeclarations": [{"name": "f", "behavior": "NON_BLOCKING"}]}]},
            SchemaInvalid,
            "/tools/0/functionDeclarations/0/behavior",
        ),
        ({"toolConfig": {"retrievalConfig": {}}}, SchemaInvalid, "/toolConfig/retrievalConfig"),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}},
            SchemaInvalid,
            "/toolConfig/functionCallingConfig/allowedFunctionNames",
        ),
        ({"generationConfig": {"maxOutputTokens": 0}}, SchemaInvalid, "/generationConfig/maxOutputTokens"),
        ({"generationConfig": {"maxOutputTokens": True}}, SchemaInvalid, "/generationConfig/maxOutputTokens"),
        ({"generationConfig": {"temperature": float("nan")}}, SchemaInvalid, "/generationConfig/temperature"),
        ({"generationConfig": {"responseLogprobs": True}}, ParameterUnsupported, "/generationConfig/responseLogprobs"),
        (
            {"generationConfig": {"responseModalities": ["IMAGE"]}},
            ParameterUnsupported,
            "/generationConfig/responseModalities",
        ),
        (
            {"generationConfig": {"responseSchema": {}, "responseMimeType": "text/plain"}},
            SchemaInvalid,
            "/generationConfig/responseMimeType",
        ),
        (
            {"generationConfig": {"responseSchema": {}, "responseJsonSchema": {}}},
            SchemaInvalid,
            "/generationConfig/responseJsonSchema",
        ),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "thinkingLevel": "HIGH"}}},
            SchemaInvalid,
            "/generationConfig/thinkingConfig/thinkingBudget",
        ),
        ({"store": True}, ParameterUnsupported, "/store"),
        ({"serviceTier": "flex"}, ParameterUnsupported, "/serviceTier"),
        ({"hub": {"price": 0}}, SchemaInvalid, "/hub/price"),
    ],
)
def test_what_is_wrong_or_not_done_here_is_refused_with_its_place(
    more: dict[str, Any], problem: type[Problem], pointer: str
) -> None:
    with pytest.raises(problem) as refused:
        CONTENTS.read({"contents": HI} | more)

    assert find_pointers(refused.value)[0] == pointer


@pytest.mark.req("LLM-2")
def test_what_is_null_asks_for_nothing_wherever_it_stands() -> None:
    turns = [
        user({"text": "Pay", "inlineData": None, "someNewField": None}),
        model(call("pay", id=None, args={"to": None}, willContinue=None)),
        user(answer("pay", {"output": None}, parts=None)),
    ]
    asked = read(turns, tools=None, some_new_parameter=None, generationConfig={"topP": None, "someNew": None})

    assert asked.warnings == ()
    assert asked.arguments["messages"][1]["proposals"][0]["arguments"] == {"to": None}


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("encode", [base64.standard_b64encode, base64.urlsafe_b64encode])
def test_a_picture_stands_in_a_request_in_either_alphabet_and_is_fetched_from_nowhere(encode: Any) -> None:
    def ask(data: str, kind: str = "image/jpeg") -> Any:
        return read([user({"inlineData": {"mimeType": kind, "data": data}})])

    content = draw("JPEG") + b"\xff\xff\xfe\xfb\xef\xbe"
    asked = ask(encode(content).decode().rstrip("="))

    [picture] = asked.pictures.values()
    assert picture.content == content
    assert asked.arguments["messages"] == [{"role": "user", "segments": [picture.to_segment()]}]
    with pytest.raises(ParameterUnsupported, match="do not stand in a request"):
        ask("AAAA", "application/pdf")
    with pytest.raises(ParameterUnsupported, match="not fetched"):
        read([user({"fileData": {"fileUri": "https://10.0.0.7/x.png", "mimeType": "image/png"}})])
    with pytest.raises(SchemaInvalid, match="By its bytes it is image/jpeg") as refused:
        ask(encode(content).decode(), "image/png")
    assert find_pointers(refused.value) == ["/contents/0/parts/0/inlineData/data"]


@pytest.mark.req("LLM-2")
def test_a_function_may_answer_with_a_picture_and_name_what_the_hub_holds() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": to_base64(draw())}}
    held: dict[str, Any] = {"type": "image_ref", "id": "art_01kc8q4m7tfxz000000000000a", "media_type": "image/png"}
    held |= {"size_bytes": 9, "width": 1, "height": 1}

    asked = read(
        [user({"text": "Draw"}, held), model(call("draw")), user(answer("draw", {"output": "x"}, parts=[inline]))]
    )

    [picture] = asked.pictures.values()
    assert asked.arguments["messages"][0]["segments"] == [text("Draw"), held]
    assert asked.arguments["messages"][2]["segments"] == [text("x"), picture.to_segment()]
    with pytest.raises(SchemaInvalid) as refused:
        read([model(held)])
    assert find_pointers(refused.value) == ["/contents/0/parts/0"]


@pytest.mark.req("LLM-2", "LLM-4")
@pytest.mark.parametrize(
    ("answered", "signed"),
    [
        (ANSWERS["reasoning"], "functionCall"),
        (build_answer(provider_state=STATE), "text"),
        (build_answer(text="", provider_state=STATE), "text"),
    ],
)
def test_a_providers_state_comes_back_as_it_went_out_also_from_a_stream(answered: Any, signed: str) -> None:
    whole = CONTENTS.write(answered, ABOUT)["candidates"][0]["content"]
    pieces = [each["candidates"][0]["content"] for each in stream(answered)]

    [part] = [each for each in whole["parts"] if "thoughtSignature" in each]
    assert signed in part
    for said in ([whole], pieces):
        results = [
            answer(each["functionCall"]["name"], {}) for one in said for each in one["parts"] if "functionCall" in each
        ]
        asked = read([*HI, *said, user(*results, {"text": "And?"})])
        [spoken] = [each for each in asked.arguments["messages"] if each["role"] == "assistant"]
        assert spoken["provider_state"] == STATE


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("signature", ["", "aHViMS4=", "aHViMS5XMTA9", "ä", "Y29udGV4dA=="])
def test_a_signature_that_the_hub_has_not_passed_on_is_refused(signature: str) -> None:
    with pytest.raises(SchemaInvalid, match="no reasoning that this hub") as refused:
        read([*HI, model({"text": "Hm", "thoughtSignature": signature})])

    assert find_pointers(refused.value) == ["/contents/1/parts/0/thoughtSignature"]
