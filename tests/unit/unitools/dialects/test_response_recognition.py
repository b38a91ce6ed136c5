"""Response recognition: is the dialect of a response known by its shape, and refused by name what is none, two or not whole?"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import mcp.types
import pytest
from anthropic.types import Message
from google.genai.types import Content, GenerateContentResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from tests.support.model_responses import (
    FORMS,
    KEY,
    chat,
    contents,
    langchain_messages,
    messages,
    requests,
    responses,
    said_in_chat,
    tagged,
)
from unitools.calls import CallProblem, ToolCall
from unitools.dialects import (
    DRIVERS,
    AmbiguousResponse,
    DialectError,
    NotJson,
    ReadOptions,
    ResponseTooLarge,
    UnknownResponse,
    UnreadableResponse,
    find_driver,
    recognise_response,
)

ONE = [("save", {"n": 1})]


def parts_of(body: dict[str, Any]) -> Any:
    return body["candidates"][0]["content"]


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("dialect", "response"),
    [
        ("openai", chat(ONE)["choices"][0]),
        ("openai", chat(ONE)["choices"][0]["message"]),
        ("openai", chat(ONE)["choices"][0]["message"]["tool_calls"]),
        ("openai", ChatCompletion.model_validate(chat(ONE)).choices[0].message),
        ("openai", ChatCompletion.model_validate(chat(ONE)).choices[0].message.tool_calls),
        ("openai", SimpleNamespace(role="assistant", tool_calls=chat(ONE)["choices"][0]["message"]["tool_calls"])),
        (
            "openai",
            {
                "model": "qwen3",
                "message": {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"function": {"name": "save", "arguments": {"n": 1}}}],
                },
                "done": True,
                "done_reason": "stop",
            },
        ),
        ("openai-responses", responses(ONE)["output"]),
        ("openai-responses", Response.model_validate(responses(ONE)).output),
        ("anthropic", {"role": "assistant", "content": messages(ONE)["content"]}),
        ("anthropic", messages(ONE)["content"]),
        ("gemini", parts_of(contents(ONE))),
        ("gemini", parts_of(contents(ONE))["parts"]),
        ("gemini", Content.model_validate(parts_of(contents(ONE)))),
        ("gemini", [{"function_call": {"name": "save", "args": {"n": 1}}}]),
        ("mcp", requests(ONE)[0]),
        ("mcp", {"method": "tools/call", "params": {"name": "save", "arguments": {"n": 1}}}),
        (
            "mcp",
            mcp.types.CallToolRequest(params=mcp.types.CallToolRequestParams(name="save", arguments={"n": 1})),
        ),
    ],
)
def test_what_an_application_takes_out_of_a_response_is_known_too(dialect: str, response: Any) -> None:
    driver = recognise_response(response)
    (call,) = driver.parse(response, ReadOptions({"save": "files.save"}))

    assert driver.dialect == dialect
    assert (call.name, call.provider_name, call.arguments, call.problem) == ("files.save", "save", {"n": 1}, None)


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("form", FORMS)
def test_exactly_one_driver_is_surest(form: str) -> None:
    response, _ = FORMS[form].of(ONE, ["save"])

    scores = sorted(driver.detect(response) for driver in DRIVERS)

    assert 0 < scores[-1] <= 100
    assert scores[-2] < scores[-1]


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "response",
    [
        said_in_chat("Good day."),
        json.dumps(said_in_chat("Good day.")),
        ChatCompletion.model_validate(said_in_chat("Good day.")),
        {"role": "assistant", "content": "Good day."},
        responses([]),
        messages([]),
        Message.model_validate(messages([])),
        contents([]),
        {"candidates": [{"finishReason": "SAFETY"}]},
        GenerateContentResponse(candidates=None, prompt_feedback=None).model_copy(update={"candidates": []}),
        {"role": "model", "parts": [{"text": "Good day."}]},
        "Good day.",
        "[1] says so, {perhaps}.",
        "{name}, good day.",
        "",
    ],
)
def test_an_answer_without_calls_is_known_and_proposes_nothing(response: Any) -> None:
    assert recognise_response(response).parse(response, ReadOptions()) == []


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "response",
    [
        None,
        7,
        True,
        object(),
        MagicMock(),
        [],
        {},
        [1, 2],
        {"answer": 42},
        '{"answer": 42}',
        "[{}]",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"name": "save", "arguments": {"n": 1}},
        {"role": "user", "content": "Good day."},
        [{"role": "user"}],
        {"choices": "many"},
        {"output": {"text": "x"}},
        {"object": "list", "output": []},
        {"content": [{"type": "image"}], "role": "assistant"},
        {"error": {"message": "overloaded"}},
        [requests(ONE)[0], {"method": "tools/list"}],
    ],
)
def test_what_is_of_no_dialect_is_refused(response: Any) -> None:
    with pytest.raises(UnknownResponse, match="none of the known dialects"):
        recognise_response(response)
    for driver in DRIVERS:
        if not isinstance(response, str):
            with pytest.raises(UnknownResponse):
                driver.parse(response, ReadOptions())


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("response", "dialects"),
    [
        ({**chat(ONE), **contents(ONE)}, ("openai", "gemini")),
        ({**responses(ONE), **contents(ONE)}, ("openai-responses", "gemini")),
        (json.dumps({**chat(ONE), "output": [], "object": None}), ("openai", "openai-responses")),
        ({**requests(ONE)[0], **messages(ONE)}, ("anthropic", "mcp")),
        (
            [{**chat(ONE)["choices"][0]["message"]["tool_calls"][0], "functionCall": {"name": "save"}}],
            ("openai", "gemini"),
        ),
    ],
)
def test_what_could_be_of_two_dialects_is_not_guessed(response: Any, dialects: tuple[str, str]) -> None:
    with pytest.raises(AmbiguousResponse) as caught:
        recognise_response(response)

    assert caught.value.dialects == dialects


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("response", "error"),
    [
        ("[" * 1024 * 1024, ResponseTooLarge),
        ('{"a":' * (1024 * 1024 // 5), ResponseTooLarge),
        ('{"choices": [' + "[" * 500_000 + "]" * 500_000 + "]}", ResponseTooLarge),
        ('{"a": "' + "x" * 8 * 1024 * 1024 + '"}', ResponseTooLarge),
        ('{"choices": [{"index": NaN}]}', NotJson),
        ('{"choices": [], "choices": []}', NotJson),
        ('{"choices": [{"index": 1e999}]}', NotJson),
        ('{"choices": ["\\ud800"]}', NotJson),
        ('{"choices": [', NotJson),
        (b'{"choices": ["\xff"]}', NotJson),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_text_that_is_not_read_is_refused_by_name(response: Any, error: type[DialectError]) -> None:
    with pytest.raises(error, match=r"^The response .*\.$"):
        recognise_response(response)
    for driver in DRIVERS:
        with pytest.raises(error):
            driver.parse(response, ReadOptions())


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_bytes_are_read_as_text(encoding: str) -> None:
    body = json.dumps(chat(ONE)).encode(encoding)

    (call,) = recognise_response(body).parse(body, ReadOptions())

    assert call.arguments == {"n": 1}


def two_choices(calls: Any) -> dict[str, Any]:
    body = chat(calls)
    body["choices"].append(body["choices"][0] | {"index": 1})
    return body


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("response", "word"),
    [
        (two_choices(ONE), "choices"),
        ({"candidates": contents(ONE)["candidates"] * 2}, "choices"),
        ({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": []}}]}, "chunk"),
        (
            ChatCompletionChunk.model_validate(
                {
                    "id": "1",
                    "created": 1,
                    "model": "m",
                    "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}],
                }
            ),
            "chunk",
        ),
        ({"type": "response.completed", "response": responses(ONE)}, "chunk"),
        ({"type": "content_block_delta", "index": 0, "delta": {}}, "chunk"),
        ({"type": "message_start", "message": messages(ONE)}, "chunk"),
        ({"role": "assistant", "content": None, "function_call": {"name": "save", "arguments": "{}"}}, "tools"),
    ],
)
def test_what_is_no_whole_answer_says_what_to_read_instead(response: Any, word: str) -> None:
    with pytest.raises(UnreadableResponse, match=word):
        recognise_response(response).parse(response, ReadOptions())


@pytest.mark.req("UNI-5")
def test_of_several_choices_the_one_that_proposes_is_read() -> None:
    body = two_choices(ONE)
    body["choices"][0] = said_in_chat("Let me see.")["choices"][0]

    (call,) = recognise_response(body).parse(body, ReadOptions())

    assert call.arguments == {"n": 1}


def parse_chat(calls: list[dict[str, Any]]) -> list[ToolCall]:
    body = chat([])
    body["choices"][0]["message"]["tool_calls"] = calls
    return find_driver("openai").parse(body, ReadOptions())


def function(**said: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "save", "arguments": "{}"}, **said}


@pytest.mark.req("TOOLS-30", "UNI-5")
def test_the_second_call_with_an_id_is_not_run() -> None:
    calls = parse_chat([function(id="a"), function(id="a"), function(id="b"), function(id="a")])

    assert [call.problem for call in calls] == [None, CallProblem.DUPLICATE_ID, None, CallProblem.DUPLICATE_ID]
    assert [call.id for call in calls] == ["a", "call_2", "b", "call_4"]
    assert [call.provider_id for call in calls] == ["a", "a", "b", "a"]
    assert calls[1].arguments is None


@pytest.mark.req("TOOLS-30", "UNI-5")
@pytest.mark.parametrize(
    ("dialect", "response"),
    [
        ("openai", [function(id="a"), function(id="a")]),
        ("openai-responses", [responses(ONE)["output"][-1]] * 2),
        ("anthropic", [messages(ONE)["content"][-1]] * 2),
        ("gemini", [{"functionCall": {"id": "a", "name": "save"}}] * 2),
        ("mcp", requests(ONE) * 2),
        ("xml", tagged(ONE) * 2),
    ],
)
def test_ids_twice_are_refused_in_every_dialect(dialect: str, response: Any) -> None:
    calls = find_driver(dialect).parse(response, ReadOptions(key=KEY))

    assert [call.problem for call in calls] == [None, CallProblem.DUPLICATE_ID]
    assert len({call.id for call in calls}) == 2


@pytest.mark.req("TOOLS-30", "UNI-5")
def test_calls_without_an_id_get_one_that_no_other_has() -> None:
    calls = parse_chat([function(), function(id="call_1"), function(id=""), function(id=None), function(id="call_3_")])

    assert [call.id for call in calls] == ["call_1_", "call_1", "call_3", "call_4", "call_3_"]
    assert [call.provider_id for call in calls] == ["", "call_1", "", "", "call_3_"]
    assert not any(call.problem for call in calls)


@pytest.mark.req("TOOLS-30", "UNI-5")
@pytest.mark.parametrize(
    "call",
    [
        None,
        7,
        {},
        {"id": "x", "type": "function"},
        {"id": "x", "type": "function", "function": {"arguments": "{}"}},
        {"id": "x", "type": "function", "function": {"name": "", "arguments": "{}"}},
        {"id": "x", "type": "function", "function": {"name": ["save"], "arguments": "{}"}},
        {"id": "x", "type": "function", "function": {"name": "x" * 10_000, "arguments": "{}"}},
        {"id": "x", "type": "custom", "custom": {"name": "save", "input": "free text"}},
    ],
)
def test_a_call_that_is_none_is_answered_and_the_others_stand(call: Any) -> None:
    read = parse_chat([function(id="a"), call, function(id="b")])

    assert [each.problem for each in read] == [None, CallProblem.MALFORMED, None]
    assert read[1].arguments is None
    assert len(read[1].name) < 1000


@pytest.mark.req("UNI-5")
def test_calls_that_the_provider_makes_itself_are_not_ours() -> None:
    ours = messages(ONE)
    ours["content"].insert(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})
    ours["content"].insert(1, {"type": "web_search_tool_result", "tool_use_id": "s", "content": []})
    listed = responses(ONE)
    listed["output"].insert(0, {"type": "mcp_call", "id": "m", "name": "other", "arguments": "{}"})

    for response in (ours, listed):
        assert [call.name for call in recognise_response(response).parse(response, ReadOptions())] == ["save"]


@pytest.mark.req("UNI-5")
def test_a_custom_tool_of_responses_is_answered_in_its_own_form() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "save", "input": "free text"}

    (call,) = recognise_response([item]).parse([item], ReadOptions())

    assert (call.problem, call.meta) == (CallProblem.MALFORMED, "custom_tool_call")


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("key", ["thoughtSignature", "thought_signature"])
def test_geminis_thought_signature_is_carried_unread(key: str) -> None:
    parts = [{"functionCall": {"name": "save"}, key: "c2ln"}, {"functionCall": {"name": "save"}}]

    calls = recognise_response(parts).parse(parts, ReadOptions())

    assert [call.meta for call in calls] == [{"thought_signature": "c2ln"}, None]
    assert [call.id for call in calls] == ["call_1", "call_2"]


@pytest.mark.req("UNI-5")
def test_geminis_signature_comes_from_the_sdk_as_bytes() -> None:
    body = contents(ONE)
    body["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = "c2ln"
    response = GenerateContentResponse.model_validate(body)

    (call,) = recognise_response(response).parse(response, ReadOptions())

    assert call.meta == {"thought_signature": b"sig"}


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("more", [{"willContinue": True}, {"partialArgs": [{"jsonPath": "$.n"}]}])
def test_a_call_of_gemini_that_goes_on_is_not_complete(more: dict[str, Any]) -> None:
    parts = [{"functionCall": {"name": "save", "args": {"n": 1}, **more}}]

    (call,) = recognise_response(parts).parse(parts, ReadOptions())

    assert call.problem is CallProblem.TRUNCATED


@pytest.mark.req("UNI-5")
def test_the_arguments_are_kept_as_they_came_and_not_for_ever() -> None:
    (call,) = find_driver("openai").parse(chat([("save", '{"n": "' + "x" * 10_000)]), ReadOptions())

    assert call.raw.startswith('{"n": "xxx')
    assert len(call.raw) < 10_000


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("body", [[{"type": ["string"]}], {"output": [], "object": {}}, {"choices": {"type": []}}])
def test_json_with_objects_where_words_belong_is_of_no_dialect(body: Any) -> None:
    with pytest.raises(UnknownResponse):
        recognise_response(body)


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("form", ["object", "dict"])
def test_a_message_of_anthropic_that_is_still_written_runs_nothing(form: str) -> None:
    """The SDK shows what it has read of a stream as a message, with arguments that may be cut."""
    body = {**messages(ONE), "stop_reason": None}
    response = Message.model_validate(body) if form == "object" else body

    (call,) = recognise_response(response).parse(response, ReadOptions())

    assert call.problem is CallProblem.TRUNCATED


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "about",
    [
        *({"finish_reason": reason} for reason in ("OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MAX_TOKENS")),
        *({"finish_reason": reason} for reason in ("time_limit", "cancelled", "ERROR_LIMIT", "UNKNOWN_9", "null")),
        *({"finish_reason": reason} for reason in ("length", "stoplength", "nulllength", "content_filter", 2)),
        {"finish_reason": "", "stop_reason": "max_tokens"},
        {"finish_reason": "stop", "stopReason": "guardrail_intervened"},
        {"finishReason": "MAX_TOKENS"},
        {"stop_reason": "pause_turn"},
        {"done_reason": "load"},
        *({"status": status} for status in ("incomplete", "failed", "in_progress", "cancelled")),
    ],
)
def test_langchain_completes_what_was_cut_so_a_reason_that_is_not_known_runs_nothing(about: dict[str, Any]) -> None:
    (call,) = find_driver("langchain").parse({**langchain_messages(ONE), "response_metadata": about}, ReadOptions())

    assert call.problem is CallProblem.TRUNCATED


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "about",
    [
        *({"finish_reason": reason} for reason in ("stop", "tool_calls", "function_call", "STOP", "COMPLETE")),
        *({"finish_reason": reason} for reason in ("TOOL_CALL", "eos_token", "stop_sequence", "normal")),
        *({"finish_reason": reason} for reason in ("stopstop", "nullnulltool_calls", "FINISH_REASON_UNSPECIFIED")),
        {"finish_reason": "", "stop_reason": "tool_use"},
        {"stop_reason": "end_turn", "stop_sequence": None},
        {"stopReason": "tool_use"},
        {"done_reason": "stop"},
        {"status": "completed", "incomplete_details": None},
        {},
    ],
)
def test_langchain_tells_of_a_whole_answer_as_the_provider_behind_it_does(about: dict[str, Any]) -> None:
    (call,) = find_driver("langchain").parse({**langchain_messages(ONE), "response_metadata": about}, ReadOptions())

    assert (call.problem, call.arguments) == (None, {"n": 1})


@pytest.mark.req("UNI-5")
def test_a_response_of_thousands_of_calls_is_not_read() -> None:
    with pytest.raises(ResponseTooLarge):
        find_driver("openai").parse(chat(ONE * 1001), ReadOptions())
