"""Response corpus: does every call of the corpus arrive as it was meant, in every form, and none of them when it was cut?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.bfcl_corpus import CALLS, cases
from tests.support.model_responses import FORMS, KEY, chat, contents, messages, responses, tagged, text_of
from unitools.calls import CallProblem
from unitools.dialects import ReadOptions, find_driver, recognise_response

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = 7  # bytes


def names_in(case: Any) -> dict[str, None]:
    return dict.fromkeys([*(tool.name for tool in case.tools), *(name for name, _ in case.calls)])


@pytest.mark.req("UNI-5", "TOOLS-30")
@pytest.mark.parametrize("form", FORMS)
def test_every_call_of_the_corpus_arrives_with_its_name_and_its_arguments(form: str) -> None:
    arrived = dotted = 0

    for case in cases():
        response, reading = FORMS[form].of(case.calls, names_in(case))
        driver = recognise_response(response)
        calls = driver.parse(response, reading)

        assert driver.dialect == FORMS[form].dialect
        assert [call.problem for call in calls] == [None] * len(case.calls)
        assert [call.name for call in calls] == [name for name, _ in case.calls]
        # As text, for 1 == 1.0 == True
        assert json.dumps([call.arguments for call in calls]) == json.dumps([arguments for _, arguments in case.calls])
        assert len({call.id for call in calls}) == len(calls)
        assert not any(call.repaired for call in calls)
        arrived += len(calls)
        dotted += sum("." in call.name for call in calls)

    assert arrived == CALLS
    assert dotted > CALLS // 10


def cuts(text: str, every: int) -> Iterator[str]:
    """The text up to each of these bytes, less half a character; not an empty one, which means no arguments."""
    whole = text.encode()
    parts = (whole[:at].decode(errors="ignore") for at in range(every, len(whole), every))
    return (part for part in parts if part)


def arguments_of_the_corpus(step: int) -> list[tuple[str, dict[str, Any]]]:
    return [call for case in cases() for call in case.calls][::step]


def check_cut_arguments(step: int, every: int) -> int:
    """Of every step-th call, cut after each so many bytes, none may be used; says how many were tried."""
    tried = 0
    chats, listed = find_driver("openai"), find_driver("openai-responses")
    for name, arguments in arguments_of_the_corpus(step):
        for part in cuts(text_of(arguments), every):
            answers = [
                chats.parse(chat([(name, part)], "length"), ReadOptions()),
                chats.parse(chat([(name, part)], "tool_calls"), ReadOptions()),
                listed.parse(responses([(name, part)], "incomplete"), ReadOptions()),
                listed.parse(responses([(name, part)], "completed"), ReadOptions()),
            ]
            tried += len(answers)
            assert all(call.problem is CallProblem.TRUNCATED for calls in answers for call in calls), part
            assert all(call.arguments is None for calls in answers for call in calls)
    return tried


def check_cut_text(step: int, every: int) -> int:
    """The same for calls in a text."""
    tried = 0
    driver, reading = find_driver("xml"), ReadOptions(key=KEY)
    for name, arguments in arguments_of_the_corpus(step):
        for part in cuts(tagged([(name, arguments)]), every):
            calls = driver.parse(part, reading)
            tried += 1
            assert [(call.problem, call.arguments) for call in calls] in ([], [(CallProblem.TRUNCATED, None)]), part
    return tried


@pytest.mark.req("UNI-5", "TOOLS-30")
def test_cut_arguments_are_never_used_whatever_the_provider_says_of_the_end() -> None:
    assert check_cut_arguments(step=3, every=EVERY) > 30_000


@pytest.mark.req("UNI-5", "TOOLS-30")
def test_a_call_in_a_text_that_was_cut_is_never_used() -> None:
    assert check_cut_text(step=11, every=EVERY) > 5_000


@pytest.mark.long
@pytest.mark.req("UNI-5", "TOOLS-30")
def test_no_argument_of_the_corpus_is_used_cut_at_any_byte() -> None:
    assert check_cut_arguments(step=1, every=1) > 900_000
    assert check_cut_text(step=1, every=1) > 500_000


@pytest.mark.req("UNI-5", "TOOLS-30")
@pytest.mark.parametrize("destructive", [False, True])
def test_whole_arguments_are_not_used_where_the_provider_says_that_the_answer_was_cut(destructive: bool) -> None:
    name, arguments = cases()[0].calls[0]
    reading = ReadOptions(destructive=frozenset({name} if destructive else ()))
    cut = [
        ("openai", chat([(name, arguments)], "length")),
        ("openai", chat([(name, arguments)], "content_filter")),
        ("openai-responses", responses([(name, arguments)], "incomplete")),
        ("openai-responses", responses([(name, arguments)]) | {"status": "incomplete"}),
        ("anthropic", messages([(name, arguments)], "max_tokens")),
        ("anthropic", messages([(name, arguments)], "model_context_window_exceeded")),
        ("gemini", contents([(name, arguments)], "MAX_TOKENS")),
        ("gemini", contents([(name, arguments)], "MALFORMED_FUNCTION_CALL")),
    ]

    for dialect, response in cut:
        (call,) = find_driver(dialect).parse(response, reading)

        assert call.problem is CallProblem.TRUNCATED, dialect
        assert call.arguments is None
        assert "limit" in call.why


def with_slips(arguments: dict[str, Any]) -> dict[str, str]:
    """What models write that have read much Python, JavaScript and Markdown."""
    text = json.dumps(arguments, ensure_ascii=False)
    return {
        "Python": repr(arguments),
        "a comma too many": text[:-1] + (",}" if arguments else "}"),
        "a fence": f"```json\n{text}\n```",
        "a comment": f"{{ // the arguments\n{text[1:-1]} /* all */ }}",
        "a mark": f"\ufeff{text}",
        "twice": json.dumps(text),
    }


def check_slips(step: int, every: int) -> tuple[int, int]:
    """Whole, a text with a slip is repaired to what was meant; cut, to that or to nothing. Says how many were and were not."""
    repaired = refused = 0
    driver = find_driver("openai")
    for name, arguments in arguments_of_the_corpus(step):
        for slip, text in with_slips(arguments).items():
            (whole,) = driver.parse(chat([(name, text)]), ReadOptions())
            if whole.problem is None:
                assert json.dumps(whole.arguments) == json.dumps(arguments), (slip, text)
                repaired += whole.repaired
            else:
                assert slip == "Python", text  # whose strings know escapes that JSON does not
                refused += 1
            for part in cuts(text, every):
                (call,) = driver.parse(chat([(name, part)]), ReadOptions())
                assert call.arguments is None or call.arguments == arguments, (slip, part)
    return repaired, refused


@pytest.mark.req("UNI-5", "TOOLS-30")
def test_slips_are_repaired_to_what_was_meant_and_never_completed() -> None:
    repaired, refused = check_slips(step=11, every=EVERY)

    assert repaired > CALLS // 3
    assert refused < repaired // 100


@pytest.mark.long
@pytest.mark.req("UNI-5", "TOOLS-30")
def test_no_slip_is_completed_at_any_byte() -> None:
    repaired, refused = check_slips(step=15, every=1)

    assert repaired > CALLS // 4
    assert refused < repaired // 100
