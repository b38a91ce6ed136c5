"""Dispatch errors: is whatever a model or a caller gets wrong a problem by name, of which nothing runs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Tally
from tests.support.calls import PAIR, assert_problem, kinds_of
from tests.support.dispatches import MANGLED, chat, rows, send, statuses

if TYPE_CHECKING:
    from tests.conftest import Caller
    from tests.support.calls import ScriptedSandbox

pytestmark = pytest.mark.django_db
BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "unknown dialect": ({"response": chat(), "dialect": "klingon"}, 422, "DIALECT.UNKNOWN"),
    "a dialect that is only written": ({"response": chat(), "dialect": "markdown"}, 422, "DIALECT.UNKNOWN"),
    "no response at all": ({"response": {"weather": "sunny"}}, 422, "DISPATCH.UNKNOWN_RESPONSE"),
    "a number": ({"response": 5}, 422, "DISPATCH.UNKNOWN_RESPONSE"),
    "a chunk of a stream": (
        {"response": {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}}]}},
        422,
        "DISPATCH.UNKNOWN_RESPONSE",
    ),
    "another dialect than it says": (
        {"response": chat(("c", "x", {})), "dialect": "gemini"},
        422,
        "DISPATCH.UNKNOWN_RESPONSE",
    ),
    "too many calls": ({"response": chat(*[(f"c{n}", "x", {}) for n in range(101)])}, 422, "SCHEMA.VALIDATION_FAILED"),
    "no response field": ({}, 422, "SCHEMA.VALIDATION_FAILED"),
    "an unknown field": ({"response": chat(), "colour": "red"}, 422, "SCHEMA.VALIDATION_FAILED"),
}


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_is_a_problem_by_name_and_runs_nothing(
    what: str, ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    body, status, reason = BAD[what]
    actor = {"type": "agent", "id": "x"}

    assert_problem(caller.post("/dispatch", {"request_id": "test-request-1", "actor": actor, **body}), status, reason)

    assert ready_for_models.calls == []
    assert Tally.objects.get().reason == reason  # witnessed all the same


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize(
    ("response", "status", "reason"),
    [
        ("[" * 500_000 + "]" * 500_000, 400, "REQUEST.MALFORMED"),
        ('{"a": NaN}', 400, "REQUEST.MALFORMED"),
        ('{"a": 1, "a": 2}', 400, "REQUEST.MALFORMED"),
        ('"' + "x" * 1_100_000 + '"', 413, "REQUEST.TOO_LARGE"),
    ],
    ids=["1 MiB of brackets", "NaN", "a key twice", "more than 1 MiB"],
)
def test_a_body_that_is_no_json_is_refused_before_any_driver_sees_it(
    response: str, status: int, reason: str, ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    body = f'{{"request_id": "test-request-1", "actor": {{"type": "agent", "id": "x"}}, "response": {response}}}'

    assert_problem(caller.post("/dispatch", body), status, reason)
    assert ready_for_models.calls == []


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("arguments", ["[" * 500_000, '{"text": ' + "[" * 70 + "]" * 70 + "}", "[1]", '"x"', "{} {}"])
def test_arguments_that_hide_something_are_answered_and_not_run(
    arguments: str, ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    answer = send(caller, chat(("c1", MANGLED, arguments)))

    assert statuses(answer)[0] in {"invalid_arguments", "truncated"}, answer.json()
    assert (ready_for_models.calls, kinds_of(rows(answer)[0])) == ([], PAIR)


@pytest.mark.req("TOOLS-30")
def test_names_that_no_tool_can_have_are_unknown(ready_for_models: ScriptedSandbox, caller: Caller) -> None:
    answer = send(caller, chat(*[(f"c{n}", name, {}) for n, name in enumerate(["x" * 600, "Ä", "a b", "'; --", "%"])]))

    assert statuses(answer) == ["unknown_tool"] * 5
