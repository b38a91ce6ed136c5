"""Structured output: is the JSON that a model was asked for right, or clearly refused, and never made up?"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import SchemaInvalid
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.messages import Text, UserMessage
from llm.problems import OutputTruncated, SafetyBlocked
from llm.requests import ChatRequest, JsonFormat, ResponseFormat, SchemaFormat
from llm.structured_output import MAX_BYTES, OutputRefused, build_second_request, read_output
from llm.usage import Usage
from tests.support.json_damages import CLEAR, UNCLEAR, make_document
from tests.support.scripted_models import ScriptedChat, text_answer

if TYPE_CHECKING:
    from llm.answers import ChatAnswer


MADE = [make_document(random.Random(seed)) for seed in range(600)]
SCHEMAS = list({str(schema): (schema, value) for schema, value in MADE}.values())[:200]
COUNTED = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
WANTED = SchemaFormat(COUNTED)


def ask_for(wanted: ResponseFormat = WANTED) -> ChatRequest:
    return ChatRequest(model="main", messages=(UserMessage((Text("How many?"),)),), response_format=wanted)


def generate(model: ScriptedChat, request: ChatRequest) -> ChatAnswer:
    return anyio.run(model.generate, request)


def findings_of(text: str, wanted: JsonFormat | SchemaFormat) -> list[tuple[str, str]]:
    with pytest.raises(OutputRefused) as refused:
        read_output(text, wanted)
    return [(each.pointer, each.keyword) for each in refused.value.findings]


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize("damage", CLEAR)
def test_a_slip_of_one_meaning_is_mended_to_the_value_that_was_meant(damage: str) -> None:
    """In 995 of 1,000 or more; what is not mended is refused, and nothing becomes another value."""
    mended = 0
    for schema, value in SCHEMAS:
        try:
            found, _ = read_output(CLEAR[damage](value), SchemaFormat(schema))
        except OutputRefused as refused:
            assert refused.findings
        else:
            assert found == value
            mended += 1

    assert len(SCHEMAS) == 200
    assert mended / len(SCHEMAS) >= 0.995


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize("damage", UNCLEAR)
def test_what_could_mean_two_things_is_refused(damage: str) -> None:
    for schema, value in SCHEMAS:
        assert findings_of(UNCLEAR[damage](value), JsonFormat())
        assert findings_of(UNCLEAR[damage](value), SchemaFormat(schema))


@pytest.mark.req("LLM-8")
def test_a_document_without_slips_is_read_as_it_is() -> None:
    for schema, value in SCHEMAS:
        assert read_output(json.dumps(value), SchemaFormat(schema, json_strict=True)) == (value, ())


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize("damage", CLEAR)
def test_nothing_is_mended_where_strict_json_is_asked_for(damage: str) -> None:
    for schema, value in SCHEMAS:
        assert findings_of(CLEAR[damage](value), SchemaFormat(schema, json_strict=True)) == [("", "invalid_json")]


@pytest.mark.req("LLM-8")
def test_no_beginning_of_a_document_is_taken_for_the_document() -> None:
    for schema, value in SCHEMAS[:60]:
        text = json.dumps(value)
        for end in range(1, len(text)):
            assert findings_of(text[:end], SchemaFormat(schema))
            assert findings_of(f"Here: {text[:end]}", SchemaFormat(schema))


@pytest.mark.req("LLM-8")
def test_of_a_document_and_the_beginning_of_another_neither_is_taken() -> None:
    assert findings_of('Say ```json\n{"n": 5}\n``` or ```json\n{"n": 6', WANTED) == [("", "invalid_json")]
    assert findings_of('{"n": 5} or {"n": 6', WANTED) == [("", "invalid_json")]


@pytest.mark.req("LLM-8")
def test_what_was_mended_is_said() -> None:
    assert read_output("Here: {'n': 5,}", WANTED) == (
        {"n": 5},
        ("text around the document", "single quotes at character 1", "a comma too many at character 8"),
    )


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ('{"n": 10}', [("/n", "maximum")]),
        ('{"n": "5"}', [("/n", "type")]),
        ("{}", [("", "required")]),
        ("[]", [("", "type")]),
        ('{"n": NaN}', [("", "not_a_number")]),
        ('{"n": Infinity}', [("", "not_a_number")]),
        ("{n: NaN}", [("", "not_a_number")]),
        ('{"n": 1e999}', [("", "huge_number")]),
        ('{"n": 1, "n": 2}', [("", "duplicate_key")]),
        ('{"n": 1, "t": "\\ud83d"}', [("", "bad_text")]),
        ("", [("", "invalid_json")]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_its_keyword(text: str, findings: list[tuple[str, str]]) -> None:
    assert findings_of(text, WANTED) == findings


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ('{"n": ' + "[" * 65 + "]" * 65 + "}", "too_deep"),
        ("[" * 100_000, "too_deep"),
        ("{'n': " + "[" * 3000 + "]" * 3000 + "}", "too_deep"),
        (json.dumps({"n": 1, "t": "x" * MAX_BYTES}), "too_large"),
        ("{'n': 1, 't': '" + "x" * 300_000 + "'}", "invalid_json"),
    ],
)
def test_a_document_is_bounded_in_size_and_depth(text: str, keyword: str) -> None:
    assert findings_of(text, WANTED) == [("", keyword)]


@pytest.mark.req("LLM-8")
def test_findings_are_bounded_in_number() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}

    assert len(findings_of(json.dumps(["x"] * 1000), SchemaFormat(schema))) == 20


@pytest.mark.req("LLM-8")
def test_a_right_answer_has_its_value_and_costs_one_request() -> None:
    model = ScriptedChat([text_answer('{"n": 5}')])

    answer = generate(model, ask_for())

    assert (answer.output, answer.repairs, answer.text) == ({"n": 5}, (), '{"n": 5}')
    assert answer.usage == Usage(10, 2)
    assert len(model.requests) == 1


@pytest.mark.req("LLM-8")
def test_a_wrong_answer_is_asked_for_once_more_with_its_mistakes_and_without_itself() -> None:
    model = ScriptedChat([text_answer('{"n": 10, "canary": "7c1f"}'), text_answer("{'n': 5}")])
    request = ask_for()

    answer = generate(model, request)

    assert (answer.output, answer.text) == ({"n": 5}, "{'n': 5}")
    assert answer.repairs == ("single quotes at character 1",)
    assert answer.usage == Usage(20, 8, requests=2)
    first, second = model.requests
    assert first == request
    assert second.messages[:-1] == request.messages
    assert second.messages[-1] == UserMessage(
        (
            Text(
                "A first answer to this was refused:\n"
                "- /n: the value is greater than the maximum of 9\n"
                "Answer again, with one complete JSON document without these mistakes and nothing else."
            ),
        )
    )


@pytest.mark.req("LLM-8")
def test_a_second_wrong_answer_is_refused_with_the_place_and_the_keyword_of_each_mistake() -> None:
    model = ScriptedChat([text_answer("No."), text_answer('{"n": 7000111}'), text_answer('{"n": 5}')])

    with pytest.raises(SchemaInvalid) as refused:
        generate(model, ask_for())

    assert refused.value.reason == "SCHEMA.VALIDATION_FAILED"
    assert refused.value.details == {
        "findings": [{"pointer": "/n", "keyword": "maximum", "message": "the value is greater than the maximum of 9"}]
    }
    assert "7000111" not in json.dumps(refused.value.to_error())
    assert len(model.requests) == 2


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize(("key", "second"), [(None, None), ("k", "k:2"), ("k" * 255, "k" * 253 + ":2")])
def test_a_request_that_is_asked_again_keeps_all_but_its_key(key: str | None, second: str | None) -> None:
    """A provider that knows the key would send its first answer once more."""
    request = replace(ask_for(), temperature=0.5, seed=7, idempotency_key=key)
    with pytest.raises(OutputRefused) as refused:
        read_output("{}", WANTED)

    again = build_second_request(request, refused.value)

    assert again.idempotency_key == second
    assert replace(again, messages=request.messages, idempotency_key=key) == request


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.OTHER])
@pytest.mark.parametrize("text", ['{"n": 5', '{"n": 5}', "{'n': 5}", "5"])
@pytest.mark.parametrize("wanted", [WANTED, JsonFormat()])
def test_an_answer_that_is_not_whole_is_neither_read_nor_repaired(
    finish: FinishReason, text: str, wanted: ResponseFormat
) -> None:
    model = ScriptedChat([text_answer(text, finish)])

    with pytest.raises(OutputTruncated):
        generate(model, ask_for(wanted))
    assert len(model.requests) == 1


@pytest.mark.req("LLM-8")
def test_a_second_answer_that_is_not_whole_is_not_read_either() -> None:
    model = ScriptedChat([text_answer("No."), text_answer('{"n": 5}', FinishReason.LENGTH)])

    with pytest.raises(OutputTruncated):
        generate(model, ask_for())


@pytest.mark.req("LLM-8")
def test_an_answer_that_the_provider_stopped_is_no_document() -> None:
    with pytest.raises(SafetyBlocked):
        generate(ScriptedChat([text_answer('{"n": 5}', FinishReason.SAFETY)]), ask_for())


@pytest.mark.req("LLM-8")
def test_an_answer_that_proposes_calls_has_no_value_yet() -> None:
    call = ChatDelta(tool_call=ToolCallDelta(0, call_id="c", name="load", arguments="{}"))
    model = ScriptedChat([(call, ChatDelta(finish_reason=FinishReason.STOP))])

    answer = generate(model, ask_for())

    assert (answer.output, answer.finish_reason, len(answer.proposals)) == (None, FinishReason.TOOL, 1)
    assert len(model.requests) == 1


@pytest.mark.req("LLM-8")
def test_text_is_not_read_as_json() -> None:
    request = ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),))

    assert generate(ScriptedChat([text_answer("{broken")]), request).output is None


@pytest.mark.req("LLM-8")
def test_the_usage_of_two_requests_is_not_known_where_that_of_one_is_not() -> None:
    unmetered = (ChatDelta(text="No."), ChatDelta(finish_reason=FinishReason.STOP))

    assert generate(ScriptedChat([unmetered, text_answer('{"n": 5}')]), ask_for()).usage is None


@pytest.mark.req("LLM-8")
def test_a_long_document_is_mended_without_holding_up_other_answers() -> None:
    value: dict[str, Any] = {"n": 5, "t": ["x" * 50] * 1000}
    model = ScriptedChat([text_answer(f"Here: {json.dumps(value)}")])

    assert generate(model, ask_for()).output == value
