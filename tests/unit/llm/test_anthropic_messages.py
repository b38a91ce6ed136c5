"""Anthropic messages: is a body for Anthropic's Messages read as what the hub asks, and is what the hub answers written as such
a message?
"""

from __future__ import annotations

from typing import Any

import pytest

from kernel.problems import Forbidden, Internal, NotFound, Problem, SchemaInvalid, TooLarge, Unauthenticated
from llm.documents import read_document
from llm.pictures import MAX_PICTURE_BYTES
from llm.problems import ModelTimedOut, ParameterUnsupported, ProviderRateLimited, ProviderUnavailable
from llm.requests import ChatRequest
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.anthropic_requests import read_count
from tests.support.drawn_pictures import draw, to_base64
from tests.support.model_calls import parse_events
from tests.support.served_answers import ABOUT, ANSWERS, PROPOSALS, STATE, build_answer, write_stream
from unitools.calls import ToolSpec

MESSAGES = AnthropicMessages()
HI = [{"role": "user", "content": "Hi"}]
WEATHER = {"name": "weather", "description": "Now", "input_schema": {"type": "object"}}


def build_body(messages: Any = HI, **more: Any) -> dict[str, Any]:
    return {"model": "main", "max_tokens": 9, "messages": messages, **more}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def find_pointers(problem: Problem) -> list[str]:
    return [each["pointer"] for each in problem.details["findings"]]


@pytest.mark.req("LLM-2")
def test_a_conversation_is_read_with_its_system_prompt_first_and_answers_of_tools_as_messages() -> None:
    turns = [
        {"role": "user", "content": [text("Pay"), text("now") | {"cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                text("Two calls") | {"citations": None},
                {"type": "tool_use", "id": "c1", "name": "pay", "input": {"to": "Zoë"}, "caller": {"type": "direct"}},
                {"type": "tool_use", "id": "c2", "name": "pay", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "paid"},
                {"type": "tool_result", "tool_use_id": "c2", "is_error": True},
                text("And now?"),
            ],
        },
    ]
    read = MESSAGES.read(build_body(turns, system=[text("Be brief"), text("Be kind")]))

    assert read.arguments["messages"] == [
        {"role": "system", "segments": [text("Be brief"), text("Be kind")]},
        {"role": "user", "segments": [text("Pay"), text("now")]},
        {
            "role": "assistant",
            "segments": [text("Two calls")],
            "proposals": [
                {"call_id": "c1", "name": "pay", "arguments": {"to": "Zoë"}},
                {"call_id": "c2", "name": "pay", "arguments": {}},
            ],
        },
        {"role": "tool", "call_id": "c1", "segments": [text("paid")], "is_error": False},
        {"role": "tool", "call_id": "c2", "segments": [text(" ")], "is_error": True},
        {"role": "user", "segments": [text("And now?")]},
    ]
    assert len(read_document(ChatRequest, read.arguments | {"model": "main"}).messages) == 6


@pytest.mark.req("LLM-2")
def test_parameters_are_read_under_the_hubs_names() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    read = MESSAGES.read(
        build_body(
            system="Be brief",
            stop_sequences=["END"],
            temperature=0.5,
            top_p=1,
            top_k=40,
            stream=True,
            output_config={"format": {"type": "json_schema", "schema": schema}, "effort": None},
            tools=[WEATHER],
            tool_choice={"type": "auto"},
            metadata={"user_id": "u-17"},
            thinking={"type": "enabled", "budget_tokens": 5, "display": "omitted"},
        )
    )

    assert (read.model, read.wants_stream, read.envelope) == ("main", True, {"user_id": "u-17"})
    assert read.own_tools == (ToolSpec("weather", "Now", {"type": "object"}),)
    del read.arguments["messages"]
    assert read.arguments == {
        "max_tokens": 9,
        "stop": ["END"],
        "temperature": 0.5,
        "top_p": 1,
        "top_k": 40,
        "reasoning_tokens": 5,
        "response_format": {"type": "schema", "json_schema": schema},
    }


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("choice", "read"),
    [
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "weather"}, {"name": "weather"}),
        ({"type": "auto"}, None),
    ],
)
def test_that_the_model_has_to_call_a_tool_is_asked_for(choice: Any, read: Any) -> None:
    assert MESSAGES.read(build_body(tools=[WEATHER], tool_choice=choice)).arguments.get("tool_choice") == read


@pytest.mark.req("LLM-2")
def test_a_choice_of_no_tool_shows_none() -> None:
    assert MESSAGES.read(build_body(tools=[WEATHER], tool_choice={"type": "none"})).own_tools == ()


@pytest.mark.req("LLM-2")
def test_what_changes_nothing_is_left_out_and_said() -> None:
    read = MESSAGES.read(
        build_body(service_tier="auto", cache_control={"type": "ephemeral"}, tools=[WEATHER | {"strict": True}])
    )

    assert [each.partition(":")[0] for each in read.warnings] == ["/service_tier", "/cache_control", "/tools/0/strict"]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("more", "problem", "pointer"),
    [
        ({"max_tokens": None}, SchemaInvalid, "/max_tokens"),
        ({"max_tokens": 0}, SchemaInvalid, "/max_tokens"),
        ({"model": None}, SchemaInvalid, "/model"),
        ({"messages": []}, SchemaInvalid, "/messages"),
        ({"mesages": []}, SchemaInvalid, "/mesages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, SchemaInvalid, "/messages/0"),
        ({"messages": [{"role": "user", "content": ""}]}, SchemaInvalid, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, SchemaInvalid, "/messages/0/content/0"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, SchemaInvalid, "/tools/0/type"),
        ({"tools": [{"name": "x"}]}, SchemaInvalid, "/tools/0/input_schema"),
        ({"top_k": "3"}, SchemaInvalid, "/top_k"),
        ({"thinking": {"type": "enabled"}}, SchemaInvalid, "/thinking/budget_tokens"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 9}}, SchemaInvalid, "/thinking/budget_tokens"),
        ({"thinking": {"type": "between_tools"}}, SchemaInvalid, "/thinking/type"),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
            ParameterUnsupported,
            "/output_config/effort",
        ),
        ({"tool_choice": {"type": "several"}}, SchemaInvalid, "/tool_choice/type"),
        ({"output_config": {"effort": "least"}}, SchemaInvalid, "/output_config/effort"),
        ({"mcp_servers": [{"name": "x"}]}, ParameterUnsupported, "/mcp_servers"),
        ({"hub": {"price": 0}}, SchemaInvalid, "/hub/price"),
    ],
)
def test_what_is_wrong_or_not_done_here_is_refused_with_its_place(
    more: dict[str, Any], problem: type[Problem], pointer: str
) -> None:
    body = {name: value for name, value in build_body(**more).items() if value is not None}
    with pytest.raises(problem) as refused:
        MESSAGES.read(body)

    assert find_pointers(refused.value)[0] == pointer


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("more", "read", "said"),
    [
        ({"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, []),
        ({"thinking": {"type": "adaptive"}}, {"reasoning_effort": "auto"}, []),
        ({"output_config": {"effort": "low"}}, {"reasoning_effort": "low"}, []),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, {"reasoning_effort": "max"}, []),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 5, "display": "summarized"},
                "output_config": {"effort": "low"},
            },
            {"reasoning_effort": "low", "reasoning_tokens": 5},
            ["/thinking/display"],
        ),
    ],
)
def test_how_much_the_model_thinks_is_read_as_its_effort(
    more: dict[str, Any], read: dict[str, Any], said: list[str]
) -> None:
    served = MESSAGES.read(build_body(**more))

    assert {name: value for name, value in served.arguments.items() if name.startswith("reasoning")} == read
    assert [each.partition(":")[0] for each in served.warnings] == said


@pytest.mark.req("LLM-2")
def test_a_picture_stands_in_a_request_and_is_fetched_from_nowhere() -> None:
    def ask(source: dict[str, Any], kind: str = "image") -> Any:
        return MESSAGES.read(build_body([{"role": "user", "content": [{"type": kind, "source": source}]}]))

    content = draw("JPEG")
    read = ask({"type": "base64", "media_type": "image/jpeg", "data": to_base64(content)})

    [picture] = read.pictures.values()
    assert picture.content == content
    assert read.arguments["messages"] == [{"role": "user", "segments": [picture.to_segment()]}]
    with pytest.raises(ParameterUnsupported, match="not fetched"):
        ask({"type": "url", "url": "http://127.0.0.1/secret.png"})
    with pytest.raises(ParameterUnsupported, match="do not stand in a request"):
        ask({"type": "base64", "media_type": "application/pdf", "data": to_base64(b"%PDF-1.7")}, "document")
    with pytest.raises(ParameterUnsupported, match="do not stand in a request"):
        ask({"type": "text", "media_type": "text/plain", "data": "Plain words."}, "document")
    with pytest.raises(SchemaInvalid, match="By its bytes it is image/jpeg") as refused:
        ask({"type": "base64", "media_type": "image/png", "data": to_base64(content)})
    assert find_pointers(refused.value) == ["/messages/0/content/0/source/data"]
    with pytest.raises(SchemaInvalid, match="not base64"):
        ask({"type": "base64", "media_type": "image/png", "data": "ä"})
    with pytest.raises(TooLarge, match="10 MiB"):
        ask({"type": "base64", "media_type": "image/png", "data": "A" * (MAX_PICTURE_BYTES * 3 // 2)})


@pytest.mark.req("LLM-2")
def test_a_result_of_a_tool_may_hold_a_picture() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": to_base64(draw())}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "draw", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "image", "source": source}]}

    read = MESSAGES.read(build_body([call, {"role": "user", "content": [result]}]))

    [picture] = read.pictures.values()
    assert read.arguments["messages"][1]["segments"] == [picture.to_segment()]


@pytest.mark.req("LLM-2")
def test_a_picture_that_the_hub_holds_is_named_as_in_the_hubs_own_chat() -> None:
    held: dict[str, Any] = {"type": "image_ref", "id": "art_01kc8q4m7tfxz000000000000a", "media_type": "image/png"}
    held |= {"size_bytes": 9, "width": 1, "height": 1}

    read = MESSAGES.read(build_body([{"role": "user", "content": [held]}]))

    assert read.arguments["messages"] == [{"role": "user", "segments": [held]}]
    with pytest.raises(SchemaInvalid) as refused:
        MESSAGES.read(build_body([{"role": "user", "content": [held | {"id": "http://x/y.png"}]}]))
    assert find_pointers(refused.value) == ["/messages/0/content/0/id"]


@pytest.mark.req("LLM-2")
def test_a_providers_state_comes_back_as_it_went_out() -> None:
    [block] = [
        each for each in MESSAGES.write(ANSWERS["reasoning"], ABOUT)["content"] if each["type"] == "redacted_thinking"
    ]
    called = {"type": "tool_use", "id": "c1", "name": "pay", "input": {}}

    read = MESSAGES.read(build_body([*HI, {"role": "assistant", "content": [block, called]}]))

    assert read.arguments["messages"][-1]["provider_state"] == STATE


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("data", ["", "hub1.", "hub1.!!", "hub1.W10=", "EroBsomethingelse"])
def test_reasoning_that_the_hub_has_not_passed_on_is_refused(data: str) -> None:
    said = [{"type": "redacted_thinking", "data": data}, text("Hi")]
    with pytest.raises(SchemaInvalid, match="no reasoning that this hub"):
        MESSAGES.read(build_body([*HI, {"role": "assistant", "content": said}]))
    with pytest.raises(SchemaInvalid, match="no reasoning that this hub"):
        thought = {"type": "thinking", "thinking": "Hm", "signature": "x"}
        MESSAGES.read(build_body([*HI, {"role": "assistant", "content": [thought, text("Hi")]}]))


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("text", "end_turn"),
        ("calls", "tool_use"),
        ("cut", "max_tokens"),
        ("stopped", "refusal"),
        ("ended for no known reason", "max_tokens"),
    ],
)
def test_only_a_whole_answer_ends_as_one(name: str, stop: str) -> None:
    assert MESSAGES.write(ANSWERS[name], ABOUT)["stop_reason"] == stop


@pytest.mark.req("LLM-2")
def test_an_answer_is_a_message_with_the_callers_names_of_the_tools_and_cached_tokens_apart() -> None:
    message = MESSAGES.write(ANSWERS["text and calls"], ABOUT)

    assert (message["id"], message["model"], message["role"]) == ("msg_inv_1", "model.script.main", "assistant")
    assert [each.get("name") for each in message["content"]] == [None, "bank_pay", "weather"]
    usage = message["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (8, 4, 7)
    assert (message["hub"]["call_id"], message["hub"]["answered_by"]) == ("inv_1", "answered-1")


@pytest.mark.req("LLM-2")
def test_a_call_that_was_cut_is_not_proposed() -> None:
    assert [each["type"] for each in MESSAGES.write(ANSWERS["cut in a call"], ABOUT)["content"]] == ["text"]


@pytest.mark.req("LLM-2")
def test_a_call_whose_arguments_cannot_be_read_fails_the_answer_in_both_forms() -> None:
    unusable = build_answer(finish="tool", proposals=[PROPOSALS[0] | {"arguments": None, "problem": "invalid_json"}])

    with pytest.raises(Problem, match="cannot be read"):
        MESSAGES.write(unusable, ABOUT)
    stream = write_stream(MESSAGES, unusable)
    kind, data = parse_events(stream)[-1]
    assert (kind, data["error"]["type"]) == ("error", "api_error")
    assert data["hub"] == {"call_id": "inv_1", "reason": "PROVIDER.BAD_RESPONSE"}
    assert '"type":"tool_use"' not in stream
    assert "message_stop" not in stream


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (SchemaInvalid("no"), 400, "invalid_request_error"),
        (ParameterUnsupported("no"), 400, "invalid_request_error"),
        (Unauthenticated("no"), 401, "authentication_error"),
        (Forbidden("no"), 403, "permission_error"),
        (NotFound("no"), 404, "not_found_error"),
        (TooLarge("no"), 413, "request_too_large"),
        (ProviderRateLimited("no"), 429, "rate_limit_error"),
        (ProviderUnavailable("no"), 529, "overloaded_error"),
        (ModelTimedOut("no"), 504, "timeout_error"),
        (Internal("no"), 500, "api_error"),
    ],
)
def test_a_problem_has_the_status_and_the_type_that_anthropics_clients_know(
    problem: Problem, status: int, kind: str
) -> None:
    found, body = MESSAGES.write_problem(problem)

    assert (found, body["type"], body["error"]["type"]) == (status, "error", kind)
    assert body["error"]["message"].startswith("no")


@pytest.mark.req("LLM-2")
def test_what_is_counted_needs_no_limit_for_an_answer() -> None:
    read = read_count({"model": "main", "messages": HI, "system": "Be brief", "tools": [WEATHER]})

    assert [each["role"] for each in read.arguments["messages"]] == ["system", "user"]
    with pytest.raises(SchemaInvalid):
        read_count({"model": "main", "messages": HI, "max_tokens": 9})


@pytest.mark.req("LLM-2")
def test_marks_for_caching_and_hurry_are_left_out_and_each_is_said_with_its_place() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text("paid") | mark], **mark}
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {}}
    turns = [
        {"role": "user", "content": [text("Pay"), text("now") | mark]},
        {"role": "assistant", "content": [call | mark]},
        {"role": "user", "content": [result]},
    ]
    read = MESSAGES.read(
        build_body(turns, system=[text("Be brief") | mark], tools=[WEATHER | mark | {"eager_input_streaming": True}])
    )

    assert [each.partition(": ")[0] for each in read.warnings] == [
        "/tools/0/eager_input_streaming",
        "/system/0/cache_control",
        "/tools/0/cache_control",
        "/messages/0/content/1/cache_control",
        "/messages/1/content/0/cache_control",
        "/messages/2/content/0/cache_control",
        "/messages/2/content/0/content/0/cache_control",
    ]
    assert len(MESSAGES.read(build_body([{"role": "user", "content": [text("x") | mark] * 99}])).warnings) == 20


@pytest.mark.req("LLM-2")
def test_what_is_null_asks_for_nothing_wherever_it_stands() -> None:
    turns = [
        {"role": "user", "content": [text("Pay") | {"cache_control": None, "some_new_field": None}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "pay", "input": {"to": None}, "caller": None}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": None, "is_error": None}]},
    ]
    tool = WEATHER | {"description": None, "strict": None, "type": None}
    choice = {"type": "auto", "disable_parallel_tool_use": None}

    read = MESSAGES.read(build_body(turns, system="", tools=[tool], tool_choice=choice, some_new_parameter=None))

    assert read.warnings == ()
    assert read.arguments["messages"][1]["proposals"][0]["arguments"] == {"to": None}
    assert [each["role"] for each in read.arguments["messages"]] == ["user", "assistant", "tool"]
    assert read.own_tools == (ToolSpec("weather", "", {"type": "object"}),)
