"""Tool result messages: does each provider's own type take what answers its model's calls, one answer for each call, in order?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mcp.types
import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from openai.types.chat import ChatCompletionToolMessageParam
from openai.types.responses.response_input_param import ResponseInputItemParam
from pydantic import BaseModel, TypeAdapter

from tests.support.model_responses import (
    KEY,
    chat,
    contents,
    converses,
    langchain_messages,
    messages,
    requests,
    responses,
    tagged,
)
from unitools.calls import Status, ToolCall, ToolResult
from unitools.dialects import DRIVERS, ReadOptions, UnreadableResponse, find_driver, recognise_response

if TYPE_CHECKING:
    from collections.abc import Callable


class Point(BaseModel):
    x: int


@dataclass
class Line:
    ends: tuple[int, ...]


VALUES = ["Grüße", {"a": [1, None]}, [1, 2], None, 7, True, Point(x=1), Line((1, 2)), {"n": math.nan}]
NAMES = {"save_file": "save.file"}
BUILD: dict[str, Callable[[Any], Any]] = {
    "openai": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": contents,
    "bedrock": converses,
    "langchain": langchain_messages,
    "mcp": requests,
    "xml": tagged,
}


def read(dialect: str, count: int) -> list[ToolCall]:
    return find_driver(dialect).parse(BUILD[dialect]([("save_file", {"n": 1})] * count), ReadOptions(NAMES, key=KEY))


def answered(dialect: str) -> Any:
    """One answer for each value, then an error and a refusal."""
    calls = read(dialect, len(VALUES) + 2)
    results = [ToolResult.ok(value) for value in VALUES]
    results += [ToolResult.error("No such file."), ToolResult.error("Not allowed.", status=Status.DENIED, code="X.Y")]
    return find_driver(dialect).reply([replace(result, call=call) for result, call in zip(results, calls, strict=True)])


TOTAL = len(VALUES) + 2


@pytest.mark.req("UNI-5")
def test_openai_chat_takes_the_answers() -> None:
    said = answered("openai")

    TypeAdapter(list[ChatCompletionToolMessageParam]).validate_python(said, strict=True)
    assert [each["tool_call_id"] for each in said] == [f"call_{at}x" for at in range(TOTAL)]
    assert said[0]["content"] == "Grüße"
    assert json.loads(said[1]["content"]) == {"a": [1, None]}
    assert "No such file." in said[-2]["content"]
    assert json.loads(said[-1]["content"])["code"] == "X.Y"


@pytest.mark.req("UNI-5")
def test_openai_responses_takes_the_answers() -> None:
    said = answered("openai-responses")

    TypeAdapter(list[ResponseInputItemParam]).validate_python(said)
    assert [each["type"] for each in said] == ["function_call_output"] * TOTAL
    assert [each["call_id"] for each in said] == [f"call_{at}x" for at in range(TOTAL)]


@pytest.mark.req("UNI-5")
def test_the_call_of_a_custom_tool_is_answered_as_one() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "save", "input": "free text"}
    driver = find_driver("openai-responses")
    (call,) = driver.parse([item], ReadOptions())

    said = driver.reply([replace(ToolResult.error(call.why), call=call)])

    TypeAdapter(list[ResponseInputItemParam]).validate_python(said)
    assert said[0]["type"] == "custom_tool_call_output"


@pytest.mark.req("UNI-5")
def test_anthropic_takes_the_answers_in_one_message() -> None:
    (said,) = answered("anthropic")

    TypeAdapter(MessageParam).validate_python(said)
    assert said["role"] == "user"
    assert [each["tool_use_id"] for each in said["content"]] == [f"toolu_{at}" for at in range(TOTAL)]
    assert [each["is_error"] for each in said["content"]] == [False] * len(VALUES) + [True, True]


@pytest.mark.req("UNI-5")
def test_gemini_takes_the_answers_in_one_content() -> None:
    (said,) = answered("gemini")

    content = Content.model_validate(said)
    answers = [part.function_response for part in content.parts or []]
    assert content.role == "user"
    assert [each.name for each in answers if each] == ["save_file"] * TOTAL
    assert [each.id for each in answers if each] == [None] * TOTAL
    assert [list(each.response or {}) for each in answers if each] == [["output"]] * len(VALUES) + [["error"]] * 2
    json.dumps(said, allow_nan=False)


@pytest.mark.req("UNI-5")
def test_gemini_gets_the_id_back_that_it_gave() -> None:
    driver = find_driver("gemini")
    (call,) = driver.parse([{"functionCall": {"id": "f1", "name": "save", "args": {}}}], ReadOptions())

    (said,) = driver.reply([replace(ToolResult.ok(1), call=call)])

    assert said["parts"][0]["functionResponse"] == {"id": "f1", "name": "save", "response": {"output": 1}}


@pytest.mark.req("UNI-5")
def test_mcp_takes_the_answers_in_the_frames_of_their_requests() -> None:
    said = answered("mcp")

    frames = [mcp.types.JSONRPCResponse.model_validate(each) for each in said]
    results = [mcp.types.CallToolResult.model_validate(each.result) for each in frames]
    assert [each.id for each in frames] == list(range(TOTAL))
    assert [each.is_error for each in results] == [False] * len(VALUES) + [True, True]
    assert [each.structured_content for each in results][:3] == [
        {"result": "Grüße"},
        {"a": [1, None]},
        {"result": [1, 2]},
    ]
    assert results[-1].structured_content is None
    json.dumps(said, allow_nan=False)


@pytest.mark.req("UNI-5")
def test_a_request_of_mcp_without_a_frame_is_answered_without_one() -> None:
    driver = find_driver("mcp")
    (call,) = driver.parse({"method": "tools/call", "params": {"name": "save"}}, ReadOptions())

    (said,) = driver.reply([replace(ToolResult.ok(1), call=call)])

    assert mcp.types.CallToolResult.model_validate(said).structured_content == {"result": 1}


@pytest.mark.req("UNI-5")
def test_text_is_answered_with_an_element_for_each_call() -> None:
    lines = answered("xml").split("\n")

    assert [line.split('"')[1] for line in lines] == [f"c{at}" for at in range(TOTAL)]
    assert [line.split('"')[5] for line in lines][-3:] == ["ok", "tool_error", "denied"]
    assert '>"Grüße"</tool_result>' in lines[0]


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("dialect", sorted(BUILD.keys() - {"gemini"}))  # whose older models give no ids
def test_a_call_that_was_refused_is_answered_under_the_providers_id(dialect: str) -> None:
    """Anthropic refuses a conversation in which one call has no result."""
    driver = find_driver(dialect)
    calls = read(dialect, 2)
    calls[1] = replace(calls[1], id="call_2", provider_id=calls[0].provider_id)

    said = driver.reply([replace(ToolResult.error("Twice."), call=call) for call in calls])

    assert calls[0].provider_id
    assert json.dumps(said).count(calls[0].provider_id) >= 2


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.dialect)
def test_nothing_to_answer_is_no_message_and_a_result_needs_its_call(driver: Any) -> None:
    assert not driver.reply([])
    with pytest.raises(ValueError, match="call"):
        driver.reply([ToolResult.ok(1)])


@pytest.mark.req("UNI-5")
def test_an_id_of_any_length_goes_back_as_it_came() -> None:
    """Gateways put Gemini's signature into the id."""
    said = chat([("save_file", {})])
    said["choices"][0]["message"]["tool_calls"][0]["id"] = long = "call_" + "x" * 4000
    driver = find_driver("openai")
    (call,) = driver.parse(said, ReadOptions(NAMES))

    assert driver.reply([replace(ToolResult.ok(1), call=call)])[0]["tool_call_id"] == long
    assert call.id == "call_1"


@pytest.mark.req("UNI-5")
def test_a_response_whose_property_fails_is_unreadable_and_quotes_nothing() -> None:
    class Broken:
        @property
        def choices(self) -> None:
            raise ValueError("hunter2")

    with pytest.raises(UnreadableResponse, match="choices of the response raises ValueError"):
        recognise_response(Broken())
