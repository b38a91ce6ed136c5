"""Response arguments: which arguments may be used, and is said why the others may not?"""

from __future__ import annotations

import json
import math
from collections import OrderedDict, UserList
from types import MappingProxyType
from typing import Any

import pytest

from unitools.calls import CallProblem, Status
from unitools.dialects.arguments import read_arguments
from unitools.dialects.model_json import MAX_BYTES, MAX_DEPTH


def begins(value: object) -> str:
    """The name of a case: not the whole mebibyte."""
    return ascii(value)[:40]


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("given", [None, "", "  \n", "null", "{}", {}, MappingProxyType({})])
def test_no_arguments_are_an_empty_object(given: Any) -> None:
    read = read_arguments(given)

    assert (read.value, read.problem, read.fixes) == ({}, None, ())


@pytest.mark.req("TOOLS-30", "UNI-5")
@pytest.mark.parametrize("given", ["", "null"])
def test_a_destructive_tool_is_not_run_on_nothing_for_something_may_have_been_lost(given: str) -> None:
    read = read_arguments(given, destructive=True)

    assert read.problem is CallProblem.INVALID_JSON
    assert "{}" in read.why
    assert read_arguments("{}", destructive=True).value == {}


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "given",
    [
        {"a": [1, 2.5, True, None, "ä", {"b": "😀"}]},
        OrderedDict(a=UserList([1, 2.5, True, None, "ä", MappingProxyType({"b": "😀"})])),
        '{"a": [1, 2.5, true, null, "ä", {"b": "\\ud83d\\ude00"}]}',
        '\r\n{"a":[1,2.5,true,null,"\\u00e4",{"b":"😀"}]}\t',
    ],
)
def test_objects_and_text_are_read_alike_into_plain_dicts_and_lists(given: Any) -> None:
    read = read_arguments(given)

    assert read.fixes == ()
    assert json.dumps(read.value, ensure_ascii=False) == '{"a": [1, 2.5, true, null, "ä", {"b": "😀"}]}'


@pytest.mark.req("UNI-5")
def test_what_was_given_as_an_object_is_not_shared() -> None:
    given = {"a": [1]}

    read = read_arguments(given)
    given["a"].append(2)

    assert read.value == {"a": [1]}


deep = {"a": 1}
for _ in range(MAX_DEPTH):
    deep = {"a": deep}  # type: ignore[dict-item]
endless: list[Any] = []
endless.append(endless)


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ('{"a": NaN}', "not_a_number"),
        ('{"a": -Infinity}', "not_a_number"),
        ("{'a': NaN}", "not_a_number"),
        ({"a": math.nan}, "not_a_number"),
        ({"a": [math.inf]}, "not_a_number"),
        ('{"a": 1e400}', "huge_number"),
        ('{"a": 18446744073709551616}', "huge_number"),
        ('{"a": -9223372036854775809}', "huge_number"),
        ('{"a": ' + "9" * 5000 + "}", "huge_number"),
        ("{'a': " + "9" * 5000 + "}", "huge_number"),
        ({"a": 2**64}, "huge_number"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "duplicate_key"),
        ("{'a': 1, 'a': 2}", "duplicate_key"),
        ('{"a": "\\ud83d"}', "bad_text"),
        ('{"\\ude00": 1}', "bad_text"),
        ("{'a': '\\ud83d'}", "bad_text"),
        ('{"a": "\ud83d"}', "bad_text"),
        ({"a": "\ud83d"}, "bad_text"),
        ('{"a":' * 65 + "1" + "}" * 65, "too_deep"),
        ("[" * MAX_BYTES, "too_deep"),
        ('{"a":' * (MAX_BYTES // 5), "too_deep"),
        ("{'a':" * 65 + "1" + "}" * 65, "too_deep"),
        (deep, "too_deep"),
        ({"a": endless}, "too_deep"),
        ('{"a": "' + "x" * MAX_BYTES + '"}', "too_large"),
        ('{"a": "' + "ä" * (MAX_BYTES // 2) + '"}', "too_large"),
        ({"a": "x" * MAX_BYTES}, "too_large"),
        ({"a": [1] * MAX_BYTES}, "too_large"),
        ("[1]", "not_an_object"),
        ("7", "not_an_object"),
        ("false", "not_an_object"),
        ('"a"', "not_an_object"),
        ([1], "not_an_object"),
        (7, "not_an_object"),
        ({"a": b"x"}, "invalid_json"),
        ({"a": {1, 2}}, "invalid_json"),
        ({1: "a"}, "invalid_json"),
        (object(), "invalid_json"),
        ('{"a": 1}{"b": 2}', "invalid_json"),
        ('{"a": 1}}', "invalid_json"),
        ('{"a": x}', "invalid_json"),
        ('{"a" 1}', "invalid_json"),
        ('{"a": 1 "b": 2}', "invalid_json"),
        ('{"a": "x "quoted" y"}', "invalid_json"),
        ('{"a": 01}', "invalid_json"),
        ('{"a": "C:\\users"}', "invalid_json"),
        ('{"a": [1, ..., 9]}', "invalid_json"),
        ('{,"a": 1}', "invalid_json"),
        ("Here you are: {}", "invalid_json"),
        ('{"a": "\x00"}', "invalid_json"),
        ('{"a": 1', "truncated"),
        ('{"a": "x', "truncated"),
        ('{"a": "x\\', "truncated"),
        ('{"a": "}', "truncated"),
        ('{"a": [1, 2}', "truncated"),
        ('"{\\"a\\": 1', "truncated"),
        ('```json\n{"a": 1', "truncated"),
        ('{"a": 1 // }', "invalid_json"),
    ],
    ids=begins,
)
def test_what_may_not_be_used_has_a_named_problem(given: Any, problem: str) -> None:
    for destructive in (False, True):
        read = read_arguments(given, destructive=destructive)

        assert (read.value, read.problem) == (None, problem)
        assert read.why.endswith(".")


@pytest.mark.req("UNI-5")
def test_a_problem_says_how_the_call_ends() -> None:
    assert CallProblem.TRUNCATED.outcome is Status.TRUNCATED
    assert {each.outcome for each in CallProblem} == {Status.TRUNCATED, Status.INVALID_ARGUMENTS}


@pytest.mark.req("UNI-5")
def test_why_arguments_are_refused_never_quotes_them() -> None:
    for text in (
        '{"secret": 1, "secret": 2}',
        '{"a": secret}',
        '{"a": "secret',
        '{"a": "\\secret"}',
        '{"secret": NaN}',
    ):
        assert "secret" not in read_arguments(text).why


@pytest.mark.req("TOOLS-30", "UNI-5")
@pytest.mark.parametrize("given", ["", "{}", '{"a": 1}', {"a": 1}, None, "{'a': 1}"])
def test_nothing_is_used_of_an_answer_that_was_cut(given: Any) -> None:
    read = read_arguments(given, cut=True)

    assert (read.value, read.problem) == (None, CallProblem.TRUNCATED)


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,\n],\n}', {"a": [1, 2]}),
        ("{'a': 'it\\'s', \"b\": \"it's\"}", {"a": "it's", "b": "it's"}),
        ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
        ("{a: 1, b_2: -2.5e3, $c-d: []}", {"a": 1, "b_2": -2500.0, "$c-d": []}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ('{"a": "\\d+\\s\\W"}', {"a": "\\d+\\s\\W"}),
        ('{"a": "it\\\'s \\ud83d\\ude00 \\u00e4 \\n"}', {"a": "it's 😀 ä \n"}),
        ('{"a": 1, // one\n "b": /* two */ 2}', {"a": 1, "b": 2}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('```json\n{"a": "```"}\n```', {"a": "```"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("{'a': {'b': ('c'), }}", None),
        ("{'a': 'http://x', 'b': '/*'}", {"a": "http://x", "b": "/*"}),
    ],
)
def test_a_slip_is_repaired_where_all_is_closed_and_never_for_a_destructive_tool(given: str, meant: Any) -> None:
    read = read_arguments(given)

    assert read.value == meant
    assert bool(read.fixes) is (meant is not None)
    refused = read_arguments(given, destructive=True)
    assert (refused.value, refused.problem) == (None, CallProblem.INVALID_JSON)


@pytest.mark.req("UNI-5")
def test_each_repair_is_told_with_its_place() -> None:
    assert read_arguments("{a: True,}").fixes == (
        "a key without quotes at character 1",
        "a word of Python at character 4",
        "a comma too many at character 9",
    )


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "text",
    [
        "{" * MAX_BYTES,
        '{"a": "' + "\\" * (MAX_BYTES - 10),
        '{"a": "' + "\\" * (MAX_BYTES - 10) + '"}',
        "{'a': [" + "1," * (MAX_BYTES // 3),
        "{'a': '" + "\n" * (MAX_BYTES // 8) + "'}",
        "{" + "/**/" * (MAX_BYTES // 8),
        "{" + "/*" * (MAX_BYTES // 8),
        "```" * (MAX_BYTES // 16),
        "{'a': " + "-" * (MAX_BYTES // 8) + "}",
        " " * MAX_BYTES + "{",
        '{"a": [' + "1," * (MAX_BYTES // 4) + "]}",
    ],
    ids=begins,
)
def test_a_mebibyte_of_anything_is_read_in_linear_time(text: str) -> None:
    """Quadratic work on these would take hours."""
    read = read_arguments(text)

    assert read.problem is None or read.value is None
