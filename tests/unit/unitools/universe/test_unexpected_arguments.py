"""Unexpected arguments: do the SDK and the hub, judging by one schema, name an argument that is one too many in the same words?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from invocations.decide.input_validation import collect_findings
from tests.support.sdk_calls import called
from unitools import Status, Universe
from unitools.checks import compile_schema


@dataclass
class Point:
    x: int = 0


u = Universe()


@u.tool
def save(amount: int, where: Point | None = None) -> None: ...


SCHEMA = compile_schema(dict(u.tools["save"].spec.parameters))


def by_the_sdk(arguments: dict[str, Any]) -> list[str]:
    result = called(u, "save", **arguments)
    assert result.status is Status.INVALID_ARGUMENTS
    return [each["msg"] for each in result.details]


def by_the_hub(arguments: dict[str, Any]) -> list[str]:
    return [each["message"] for each in collect_findings(SCHEMA, arguments)]


@pytest.mark.req("UNI-7")
@pytest.mark.parametrize("name", ["user", "Amount", "it's", 'a "b"', "a.b", "größe", "数量", "x" * 80, "a\\b"])
def test_both_say_the_same_of_one_that_is_too_many(name: str) -> None:
    arguments = {"amount": 1, name: "hunter2"}

    assert by_the_sdk(arguments) == by_the_hub(arguments)
    assert name in by_the_hub(arguments)[0]


@pytest.mark.req("UNI-7")
def test_both_name_each_of_several() -> None:
    arguments = {"amount": 1, "user": 1, "z": 2}

    for judge in (by_the_sdk, by_the_hub):
        told = " ".join(judge(arguments))
        assert "'user'" in told
        assert "'z'" in told
        assert "'amount'" not in told


@pytest.mark.req("UNI-7")
def test_what_would_act_on_a_terminal_is_named_by_its_escape() -> None:
    (told,) = by_the_sdk({"amount": 1, "\x1b[2J": 1})

    assert "'\\x1b[2J'" in told
