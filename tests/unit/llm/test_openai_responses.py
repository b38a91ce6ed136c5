"""OpenAI responses: is a body for OpenAI's Responses read as what the hub asks, and is what the hub answers written as such a
response?
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.problems import Problem, SchemaInvalid, TooLarge, Unauthenticated
from llm.documents import read_document
from llm.pictures import MAX_PICTURE_BYTES
from llm.problems import ParameterUnsupported, ProviderUnavailable, StreamTruncated
from llm.requests import ChatRequest
from llm.served.openai_responses import OpenAIResponses
from tests.support.drawn_pictures import draw, to_data_url
from tests.support.model_calls import parse_events
from tests.support.served_answers import ABOUT, ANSWERS, PROPOSALS, STATE, build_answer, build_deltas, write_stream
from unitools.calls import ToolSpec

RESPONSES = OpenAIResponses()
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Now",
    "parameters": {"type": "object"},
    "strict": False,
}


def build_body(given: Any = "Hi", **more: Any) -> dict[str, Any]:
    return {"model": "main", "input": given, **more}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def find_pointers(problem: Problem) -> list[str]:
    return [each["pointer"] for each in problem.details["findings"]]


@pytest.mark.req("LLM-2")
def test_items_are_read_as_a_conversation_and_what_belongs_to_one_answer_is_one_message() -> None:
    items = [
        {"role": "developer", "content": "Be kind"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Pay"}]},
        {"role": "assistant", "phase": "commentary", "content": "First"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Two calls", "annotations": [], "logprobs": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": '{"to": "Zoë"}', "id": "fc_1"},
        {"type": "function_call", "call_id": "c2", "name": "pay", "arguments": "{oops"},
        {"type": "function_call_output", "call_id": "c1", "output": "paid"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {"role": "user", "content": "And now?"},
    ]
    read = RESPONSES.read(build_body(items, instructions="Be brief"))

    assert read.arguments["messages"] == [
        {"role": "system", "segments": [text("Be brief")]},
        {"role": "system", "segments": [text("Be kind")]},
        {"role": "user", "segments": [text("Pay")]},
        {
            "role": "assistant",
            "segments": [text("First"), text("Two calls")],
            "proposals": [
                {"call_id": "c1", "name": "pay", "arguments": {"to": "Zoë"}},
                {"call_id": "c2", "name": "pay", "arguments": {}},
            ],
        },
        {"role": "tool", "call_id": "c1", "segments": [text("paid")]},
        {"role": "tool", "call_id": "c2", "segments": [text(" ")]},
        {"role": "user", "segments": [text("And now?")]},
    ]
    assert len(read_document(ChatRequest, read.arguments | {"model": "main"}).messages) == 7


@pytest.mark.req("LLM-2")
def test_parameters_are_read_under_the_hubs_names_and_kept_for_the_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wanted = {"type": "json_schema", "name": "found", "schema": schema, "strict": True}
    body = build_body(
        max_output_tokens=9,
        temperature=0.5,
        stream=True,
        store=False,
        parallel_tool_calls=True,
        text={"format": wanted},
        tools=[WEATHER],
        metadata={"run": "7"},
        user="u-17",
        prompt_cache_key="thread 7",
        include=["reasoning.encrypted_content"],
        truncation="disabled",
    )
    read = RESPONSES.read(body)

    assert (read.model, read.wants_stream, read.warnings) == ("main", True, ())
    assert read.envelope == {"user_id": "u-17"}
    assert read.own_tools == (ToolSpec("weather", "Now", {"type": "object"}),)
    del read.arguments["messages"]
    assert read.arguments == {
        "max_tokens": 9,
        "temperature": 0.5,
        "response_format": {"type": "schema", "json_schema": schema},
        "cache_hint": "thread 7",
    }
    response = RESPONSES.write(
        ANSWERS["text"], ABOUT.__class__(call_id="i", model="m", created=1, options=read.options)
    )
    assert (response["metadata"], response["temperature"], response["top_p"]) == ({"run": "7"}, 0.5, 1.0)
    assert response["prompt_cache_key"] == "thread 7"
    assert (response["tools"], response["text"], response["store"]) == ([WEATHER], {"format": wanted}, False)


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("choice", "read"),
    [("required", "required"), ({"type": "function", "name": "weather"}, {"name": "weather"}), ("auto", None)],
)
def test_that_the_model_has_to_call_a_tool_is_asked_for(choice: Any, read: Any) -> None:
    assert RESPONSES.read(build_body(tools=[WEATHER], tool_choice=choice)).arguments.get("tool_choice") == read


@pytest.mark.req("LLM-2")
def test_the_effort_is_passed_on_and_that_summaries_are_not_is_said() -> None:
    read = RESPONSES.read(build_body(reasoning={"effort": "low", "summary": "auto"}))
    quiet = RESPONSES.read(build_body(reasoning={"effort": None, "summary": None}))

    assert (read.arguments["reasoning_effort"], read.options["reasoning"]) == (
        "low",
        {"effort": "low", "summary": None},
    )
    assert [each.partition(":")[0] for each in read.warnings] == ["/reasoning/summary"]
    assert "reasoning_effort" not in quiet.arguments
    assert ("reasoning" in quiet.options, quiet.warnings) == (False, ())


@pytest.mark.req("LLM-2")
def test_a_choice_of_no_tool_shows_none() -> None:
    assert RESPONSES.read(build_body(tools=[WEATHER], tool_choice="none")).own_tools == ()


@pytest.mark.req("LLM-2")
def test_what_changes_nothing_is_left_out_and_said() -> None:
    read = RESPONSES.read(build_body(safety_identifier="x", tools=[WEATHER | {"strict": True}]))

    assert [each.partition(":")[0] for each in read.warnings] == ["/safety_identifier", "/tools/0/strict"]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("more", "problem", "pointer"),
    [
        ({"model": None}, SchemaInvalid, "/model"),
        ({"input": None}, SchemaInvalid, "/input"),
        ({"imput": "Hi"}, SchemaInvalid, "/imput"),
        ({"max_output_tokens": 0}, SchemaInvalid, "/max_output_tokens"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, SchemaInvalid, "/input/0/role"),
        ({"input": [{"type": "web_search_call"}]}, SchemaInvalid, "/input/0"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, SchemaInvalid, "/input/0"),
        ({"tools": [{"type": "web_search"}]}, SchemaInvalid, "/tools/0/type"),
        ({"text": {"verbosity": "low"}}, SchemaInvalid, "/text/verbosity"),
        ({"text": {"format": {"type": "grammar"}}}, SchemaInvalid, "/text/format/type"),
        ({"text": {"format": {"type": "json_schema"}}}, SchemaInvalid, "/text/format/schema"),
        ({"store": True}, ParameterUnsupported, "/store"),
        ({"previous_response_id": "resp_1"}, ParameterUnsupported, "/previous_response_id"),
        ({"conversation": "conv_1"}, ParameterUnsupported, "/conversation"),
        ({"background": True}, ParameterUnsupported, "/background"),
        ({"reasoning": {"depth": 1}}, SchemaInvalid, "/reasoning/depth"),
        ({"reasoning": "low"}, SchemaInvalid, "/reasoning"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, ParameterUnsupported, "/tool_choice"),
        ({"top_logprobs": 2}, ParameterUnsupported, "/top_logprobs"),
    ],
)
def test_what_is_wrong_or_not_done_here_is_refused_with_its_place(
    more: dict[str, Any], problem: type[Problem], pointer: str
) -> None:
    body = {name: value for name, value in build_body(**more).items() if value is not None} if more else {}
    with pytest.raises(problem) as refused:
        RESPONSES.read(body)

    assert find_pointers(refused.value)[0] == pointer


@pytest.mark.req("LLM-2")
def test_a_conversation_that_the_hub_was_to_keep_is_refused_in_a_clear_sentence() -> None:
    with pytest.raises(ParameterUnsupported, match=r"keeps no conversation\. Send all of it in `input`"):
        RESPONSES.read(build_body(previous_response_id="resp_1"))


@pytest.mark.req("LLM-2")
def test_a_picture_stands_in_a_request_and_is_fetched_from_nowhere() -> None:
    def ask(kind: str = "input_image", **part: Any) -> Any:
        return RESPONSES.read(build_body([{"role": "user", "content": [{"type": kind, **part}]}]))

    read = ask(image_url=to_data_url(draw()), detail="low")

    [picture] = read.pictures.values()
    assert read.arguments["messages"] == [{"role": "user", "segments": [picture.to_segment()]}]
    assert read.warnings == ("/input/0/content/0/detail: The provider decides how closely it looks at a picture.",)
    with pytest.raises(ParameterUnsupported, match="not fetched"):
        ask(image_url="http://127.0.0.1/secret.png")
    with pytest.raises(ParameterUnsupported, match="not fetched"):
        ask(file_id="file-1")
    with pytest.raises(ParameterUnsupported, match="do not stand in a request"):
        ask("input_file", file_data=to_data_url(b"%PDF-1.7", "application/pdf"))
    with pytest.raises(SchemaInvalid, match="not base64"):
        ask(image_url="data:image/png;base64,ä")
    with pytest.raises(TooLarge, match="10 MiB"):
        ask(image_url="data:image/png;base64," + "A" * (MAX_PICTURE_BYTES * 3 // 2))


@pytest.mark.req("LLM-2")
def test_a_providers_state_comes_back_as_it_went_out() -> None:
    items = RESPONSES.write(ANSWERS["reasoning"], ABOUT)["output"]
    outputs = [
        {"type": "function_call_output", "call_id": each["call_id"], "output": "done"}
        for each in items
        if each["type"] == "function_call"
    ]

    read = RESPONSES.read(build_body([{"role": "user", "content": "Hi"}, *items, *outputs]))

    said = read.arguments["messages"][1]
    assert (said["provider_state"], len(said["proposals"])) == (STATE, 2)


@pytest.mark.req("LLM-2")
def test_reasoning_that_the_hub_has_not_passed_on_is_refused() -> None:
    foreign = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAsomething"}
    with pytest.raises(SchemaInvalid, match="no reasoning that this hub") as refused:
        RESPONSES.read(build_body([{"role": "user", "content": "Hi"}, foreign]))
    assert find_pointers(refused.value) == ["/input/1/encrypted_content"]


@pytest.mark.req("LLM-2")
def test_an_answer_is_a_response_with_the_callers_names_of_the_tools() -> None:
    response = RESPONSES.write(ANSWERS["text and calls"], ABOUT)

    assert (response["id"], response["object"], response["status"]) == ("resp_inv_1", "response", "completed")
    assert [each.get("name") for each in response["output"]] == [None, "bank_pay", "weather"]
    assert json.loads(response["output"][1]["arguments"]) == PROPOSALS[0]["arguments"]
    assert response["usage"]["total_tokens"] == 19
    assert (response["hub"]["call_id"], response["completed_at"] - response["created_at"]) == ("inv_1", 2)


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(("name", "reason"), [("cut", "max_output_tokens"), ("stopped", "content_filter")])
def test_an_answer_that_is_not_whole_says_why(name: str, reason: str) -> None:
    response = RESPONSES.write(ANSWERS[name], ABOUT)

    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert response["output"][0]["status"] == "incomplete"


@pytest.mark.req("LLM-2")
def test_arguments_that_cannot_be_used_are_no_json_either() -> None:
    unusable = build_answer(finish="tool", proposals=[PROPOSALS[0] | {"arguments": None, "problem": "invalid_json"}])

    [item] = [each for each in RESPONSES.write(unusable, ABOUT)["output"] if each["type"] == "function_call"]

    assert item["status"] == "incomplete"
    with pytest.raises(json.JSONDecodeError):
        json.loads(item["arguments"])


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("name", ANSWERS)
def test_events_are_numbered_and_each_item_is_opened_and_closed_once(name: str) -> None:
    events = parse_events(write_stream(RESPONSES, ANSWERS[name]))

    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    assert [data["type"] for _, data in events] == [kind for kind, _ in events]
    assert [kind for kind, _ in events[:2]] == ["response.created", "response.in_progress"]
    response = events[-1][1]["response"]
    assert events[-1][0] == f"response.{response['status']}"
    for what in ("added", "done"):
        places = [data["output_index"] for kind, data in events if kind == f"response.output_item.{what}"]
        assert places == list(range(len(response["output"])))


@pytest.mark.req("LLM-2")
def test_a_stream_that_broke_off_ends_with_the_error_and_a_failed_response() -> None:
    writer = RESPONSES.open_stream(ABOUT, {})
    said = "".join(map(writer.add, build_deltas(ANSWERS["text"])[:2]))
    events = parse_events(said + writer.fail(StreamTruncated()))

    (error, first), (failed, second) = events[-2:]
    assert (error, failed) == ("error", "response.failed")
    assert first["error"]["code"] == "PROVIDER.STREAM_TRUNCATED"
    assert first["hub"] == {"reason": "PROVIDER.STREAM_TRUNCATED"}
    assert (second["response"]["status"], second["response"]["output"]) == ("failed", [])


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (SchemaInvalid("no"), 400, "invalid_request_error"),
        (Unauthenticated("no"), 401, "authentication_error"),
        (ProviderUnavailable("no"), 503, "server_error"),
    ],
)
def test_a_problem_is_an_error_of_openais(problem: Problem, status: int, kind: str) -> None:
    found, body = RESPONSES.write_problem(problem)

    assert (found, body["error"]["type"]) == (status, kind)


@pytest.mark.req("LLM-2")
def test_what_is_null_in_an_item_asks_for_nothing_as_sdks_dump_what_they_were_answered() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}", "some_new_field": None}
    output = {"type": "function_call_output", "call_id": "c1", "output": "paid", "status": None}

    read = RESPONSES.read(build_body([call, output], text={"format": None, "verbosity": None}))

    assert [each["role"] for each in read.arguments["messages"]] == ["assistant", "tool"]
    with pytest.raises(SchemaInvalid, match="some_new_field"):
        RESPONSES.read(build_body([call | {"some_new_field": 1}, output]))
