"""Served formats: does a served format lose nothing: neither of a request nor of an answer, whole or in pieces?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.problems import SchemaInvalid
from llm.answers import ChatDelta
from llm.model_features import Treatment
from llm.problems import ModelTimedOut, ParameterUnsupported
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.formats import Answered, ChatFormat
from llm.served.openai_chat import DONE, PARAMETERS, OpenAIChatFormat
from llm.served.openai_embeddings import encode_vector
from llm.served.openai_responses import OpenAIResponses
from llm.served.parameters import Findings, read_parameters
from llm.served.problem_objects import build_headers, find_param, write_error

FORMAT = OpenAIChatFormat()
ABOUT = Answered(call_id="inv_1", model="model.a.main", created=7, names={"shop.price.quote": "shop_price_quote"})
USAGE = {
    "input_tokens": 3,
    "output_tokens": 4,
    "cached_tokens": 1,
    "requests": 1,
    "counted_by": "provider",
    "cost_micros": 12,
    "price_version": "v1",
}
CALL = {"call_id": "call_1", "name": "shop.price.quote", "arguments": {"sku": "a"}}
BROKEN = {
    "call_id": "call_2",
    "name": "shop.price.quote",
    "arguments": None,
    "problem": "truncated",
    "detail": "It was cut.",
}


def build_answer(text: str = "Hello", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    finish = "tool" if calls else "stop"
    return {"text": text, "proposals": list(calls), "finish_reason": finish, "model": "m-1", "usage": USAGE, **more}


def build_body(**more: Any) -> dict[str, Any]:
    return {"model": "main", "messages": [{"role": "user", "content": "x"}], **more}


def read_stream(text: str) -> dict[str, Any]:
    """What a program puts together of a stream: text, calls and the reason of the end."""
    assert text.endswith(DONE)
    chunks = [json.loads(each.removeprefix("data: ")) for each in text.removesuffix(DONE).split("\n\n") if each]
    choices = [each["choices"][0] for each in chunks if each["choices"]]
    calls = [call for each in choices for call in each["delta"].get("tool_calls", [])]
    return {
        "content": "".join(each["delta"].get("content") or "" for each in choices) or None,
        "calls": [{name: call[name] for name in ("id", "type", "function")} for call in calls],
        "finish": choices[-1]["finish_reason"],
    }


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("pieces", [[], ["Hello"], ["He", "", "llo"]])
@pytest.mark.parametrize("calls", [(), (CALL,), (CALL, BROKEN)])
def test_a_stream_says_what_the_whole_answer_says(pieces: list[str], calls: tuple[dict[str, Any], ...]) -> None:
    answer = build_answer("Hello", *calls)
    writer = FORMAT.open_stream(ABOUT, {})

    said = "".join(writer.add(ChatDelta(text=each)) for each in pieces) + writer.end(answer)

    message = FORMAT.write(answer, ABOUT)["choices"][0]
    whole = {"content": message["message"]["content"], "calls": message["message"].get("tool_calls", [])}
    assert read_stream(said) == whole | {"finish": message["finish_reason"]}


@pytest.mark.req("LLM-3")
def test_arguments_that_cannot_be_used_are_no_json_so_that_nobody_makes_the_call_without_them() -> None:
    (call,) = FORMAT.write(build_answer("", BROKEN), ABOUT)["choices"][0]["message"]["tool_calls"]

    assert "It was cut." in call["function"]["arguments"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["function"]["arguments"])


@pytest.mark.req("LLM-5")
def test_a_stream_that_failed_has_no_mark_of_a_good_end() -> None:
    writer = FORMAT.open_stream(ABOUT, {"include_usage": True})

    said = writer.add(ChatDelta(text="Hm")) + writer.fail(ModelTimedOut())

    assert DONE not in said
    assert json.loads(said.strip().rpartition("data: ")[2])["error"]["code"] == "LLM.TIMEOUT"


@pytest.mark.req("LLM-8")
def test_a_value_that_was_asked_for_as_json_is_what_was_read_and_not_what_was_written() -> None:
    answer = build_answer('Sure: {"a": 1,}', output={"a": 1})

    assert json.loads(FORMAT.write(answer, ABOUT)["choices"][0]["message"]["content"]) == {"a": 1}


@pytest.mark.req("LLM-4")
def test_each_refused_parameter_is_refused_and_each_warned_one_is_said() -> None:
    for each in PARAMETERS:
        findings = Findings()
        given, warnings = read_parameters({each.name: "asked"}, PARAMETERS, findings)
        told = (bool(given), bool(warnings), bool(findings.unsupported))
        assert told == tuple(each.treatment is kind for kind in (Treatment.PASSED, Treatment.WARNED, Treatment.REFUSED))


@pytest.mark.req("LLM-1")
def test_what_is_wrong_is_named_before_what_is_not_done_here_and_no_value_is_quoted() -> None:
    with pytest.raises(SchemaInvalid) as wrong:
        FORMAT.read(build_body(n=2, secret="my secret"))
    with pytest.raises(ParameterUnsupported) as unsupported:
        FORMAT.read(build_body(n=2))

    assert find_param(wrong.value) == "secret"
    assert [each["pointer"] for each in wrong.value.details["findings"]] == ["/secret", "/n"]
    assert "my secret" not in json.dumps(write_error(wrong.value))
    assert find_param(unsupported.value) == "n"


@pytest.mark.req("LLM-4")
def test_a_true_is_no_one() -> None:
    with pytest.raises(ParameterUnsupported):
        FORMAT.read(build_body(n=True))


@pytest.mark.req("LLM-4")
def test_the_hubs_own_parameters_go_where_they_belong() -> None:
    read = FORMAT.read(build_body(user="ada", hub={"on_consent": "ask", "purpose": "p", "strict_parameters": True}))
    named = FORMAT.read(build_body(prompt_cache_key="thread 7"))

    assert named.arguments["cache_hint"] == "thread 7"
    assert read.envelope == {"on_consent": "ask", "purpose": "p", "user_id": "ada"}
    assert read.arguments["strict_parameters"] is True


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("choice", "shown", "chosen"),
    [
        ("auto", 1, None),
        ("none", 0, None),
        ("required", 1, "required"),
        ({"type": "function", "function": {"name": "f"}}, 1, {"name": "f"}),
    ],
)
def test_a_choice_of_tools_is_the_hubs_own(choice: Any, shown: int, chosen: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

    read = FORMAT.read(build_body(tools=[tool], tool_choice=choice))

    assert (len(read.own_tools), read.arguments.get("tool_choice")) == (shown, chosen)


@pytest.mark.req("LLM-9")
def test_sdks_are_told_to_ask_again_only_where_waiting_helps() -> None:
    assert build_headers(ModelTimedOut())["X-Should-Retry"] == "true"
    assert build_headers(SchemaInvalid())["X-Should-Retry"] == "false"


@pytest.mark.req("LLM-6")
def test_a_vector_as_base64_is_made_of_numbers_of_32_bits() -> None:
    assert encode_vector([1.0, -2.5]) == "AACAPwAAIMA="


@pytest.mark.req("LLM-2")
def test_an_answer_that_a_helper_of_the_sdk_has_read_is_read_by_its_content() -> None:
    echoed = {"role": "assistant", "content": '{"a": 1}', "parsed": {"a": 1}, "some_new_field": None}

    read = FORMAT.read(build_body(messages=[{"role": "user", "content": "x"}, echoed]))

    assert read.arguments["messages"][1] == {"role": "assistant", "segments": [{"type": "text", "text": '{"a": 1}'}]}
    assert read.warnings == ()


SINGLE: list[tuple[ChatFormat, dict[str, Any], dict[str, Any]]] = [
    (FORMAT, {"parallel_tool_calls": False}, {"parallel_tool_calls": True}),
    (OpenAIResponses(), {"input": "x", "parallel_tool_calls": False}, {"input": "x", "parallel_tool_calls": True}),
    (
        AnthropicMessages(),
        {"max_tokens": 9, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"max_tokens": 9, "tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
    ),
]


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(("served", "single", "usual"), SINGLE, ids=lambda each: getattr(each, "name", ""))
def test_each_format_has_a_word_for_one_call_at_a_time(
    served: ChatFormat, single: dict[str, Any], usual: dict[str, Any]
) -> None:
    least = {"model": "main"} if "input" in single else build_body()

    assert served.read(least | single).arguments["parallel_calls"] is False
    assert "parallel_calls" not in served.read(least | usual).arguments
