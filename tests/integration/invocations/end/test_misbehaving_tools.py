"""Misbehaving tools: what a tool does wrong ends in its catalogued problem, with one Begin, one End and one attempt."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from access.roles import ROLE_PERMISSIONS, Role
from evidence.models import Fact
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.problems import find_problem_class
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db


# What a tool does wrong: one Begin, one End, one attempt.

BEHAVIOURS: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "raises": ({}, 502, "TOOL.EXECUTION_FAILED", "failed"),
    "crashes": ({}, 502, "TOOL.EXECUTION_FAILED", "failed"),
    "sleeps": ({"timeout_ms": 300}, 504, "SANDBOX.TIMEOUT", "timed_out"),
    "wrong_shape": (
        {"output_schema": {"type": "object", "properties": {"answer": {"type": "number"}}}},
        502,
        "SCHEMA.OUTPUT_INVALID",
        "failed",
    ),
    "not_json": ({}, 502, "SCHEMA.OUTPUT_INVALID", "failed"),
    "large": ({}, 502, "SANDBOX.RESOURCE_EXCEEDED", "failed"),
    "out_of_stock": ({"ttl_seconds": 5}, 409, "DOMAIN.OUT_OF_STOCK", "failed"),
}


# What a run says is written down by another thread, which on SQLite waits, half a minute at most, for the test's transaction to end.
COMMITS = pytest.mark.django_db(transaction=True)


@COMMITS
@pytest.mark.req("TOOLS-18", "TOOLS-23", "TOOLS-24", "SVC-4", "SVC-7")
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_tool_that_misbehaves_ends_in_its_problem_with_a_pair(
    name: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    changes, status, reason, state = BEHAVIOURS[name]
    enable(name, **changes)
    grant()

    answer = caller.invoke(f"sample.tools.{name}", {"text": "canary-5f3a"})

    body = assert_problem(answer, status, reason)
    assert body["call"]["status"] == "error"
    assert body["call"]["state"] == state
    assert "canary-5f3a" not in answer.content.decode()
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    assert row.attempt == 1
    assert row.attempts.get().finished_at is not None


@COMMITS
@pytest.mark.req("SVC-4", "SVC-7")
@pytest.mark.parametrize(("name", "word"), [("raises", "TOOL_EXECUTION_ERROR"), ("sleeps", "TOOL_TIMEOUT_ERROR")])
def test_a_failure_carries_the_word_of_the_older_tool_service(
    name: str, word: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable(name, timeout_ms=300 if name == "sleeps" else 5000)
    grant()

    answer = caller.invoke(f"sample.tools.{name}", {})

    assert answer.json()["error"]["error_type"] == word


@COMMITS
@pytest.mark.req("SPEC-6")
def test_a_domain_error_reaches_the_caller_with_its_details(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable("out_of_stock", ttl_seconds=5)
    grant()

    answer = caller.invoke("sample.tools.out_of_stock", {})

    error = answer.json()["error"]
    assert error["code"] == "OUT_OF_STOCK"
    assert error["message"] == "Only 3 are left."
    assert error["details"] == {"available": 3}


@pytest.mark.req("SPEC-6")
def test_a_code_of_the_tools_own_is_not_passed_on(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    sandbox.outcome = RunOutcome(RunStatus.DOMAIN_ERROR, error_code="MY_OWN_CODE", error_message="secret words")

    answer = caller.invoke("sample.tools.echo", {})

    body = assert_problem(answer, 502, "TOOL.EXECUTION_FAILED")
    assert body["error"]["code"] == "UPSTREAM_ERROR"
    assert "secret words" not in answer.content.decode()


OUTCOMES = {
    RunStatus.RAISED: (502, "TOOL.EXECUTION_FAILED", "failed"),
    RunStatus.BAD_RESULT: (502, "SCHEMA.OUTPUT_INVALID", "failed"),
    RunStatus.LOAD_TIMED_OUT: (504, "SANDBOX.LOAD_TIMEOUT", "timed_out"),
    RunStatus.TIMED_OUT: (504, "SANDBOX.TIMEOUT", "timed_out"),
    RunStatus.OUT_OF_MEMORY: (502, "SANDBOX.RESOURCE_EXCEEDED", "failed"),
    RunStatus.RESULT_TOO_LARGE: (502, "SANDBOX.RESOURCE_EXCEEDED", "failed"),
    RunStatus.LOG_FLOOD: (502, "SANDBOX.RESOURCE_EXCEEDED", "failed"),
    RunStatus.EXITED: (502, "TOOL.EXECUTION_FAILED", "failed"),
    RunStatus.CAPABILITY_BLOCKED: (403, "SANDBOX.CAPABILITY_BLOCKED", "failed"),
    RunStatus.START_FAILED: (503, "SANDBOX.START_FAILED", "failed"),
    RunStatus.LOST: (503, "SANDBOX.WORKER_LOST", "outcome_unknown"),
    RunStatus.CANCELLED: (503, "SANDBOX.CANCELLED", "cancelled"),
    RunStatus.DOMAIN_ERROR: (502, "TOOL.EXECUTION_FAILED", "failed"),  # without a code of the catalogue
}


@pytest.mark.req("TOOLS-18", "TOOLS-24")
@pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.OK])
def test_every_way_a_sandbox_can_end_has_its_problem_and_a_pair(
    status: RunStatus,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    http, reason, state = OUTCOMES[status]
    enable()
    grant()
    sandbox.outcome = RunOutcome(status, blocked="net", attempts=("net:example.org:443",), error_message="why", box="b")

    answer = caller.invoke("sample.tools.echo", {"text": "x"})

    assert_problem(answer, http, reason)
    row = row_of(answer)
    assert row.state == state
    assert kinds_of(row) == PAIR
    waiting_helps = (
        find_problem_class(reason).retry_after_s is not None and status is not RunStatus.LOAD_TIMED_OUT
    )  # it had begun
    assert (answer.headers.get("Retry-After") is not None) == waiting_helps


@pytest.mark.req("SVC-7", "TOOLS-24")
@pytest.mark.parametrize("began", [False, True])
def test_a_load_that_timed_out_says_whether_the_same_call_may_be_sent_again(
    began: bool,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    auditor: Person,
) -> None:
    enable()
    grant()
    details, box = ({"import_s": 10.0}, "b") if began else ({}, "")
    sandbox.outcome = RunOutcome(RunStatus.LOAD_TIMED_OUT, error_details=details, box=box)
    sandbox.outcome = replace(sandbox.outcome, steps=(("wait", 0.0, 5.0), ("load", 5.0, 10_005.0)))
    call = partial(caller.invoke, "sample.tools.echo", {"text": "x"}, headers={"Idempotency-Key": "one-key"})

    first = call()
    again = call()

    error = assert_problem(first, 504, "SANDBOX.LOAD_TIMEOUT")["error"]
    assert error["retryable"] == ("after_action" if began else "yes")
    assert first.headers.get("Retry-After") == (None if began else "30")
    assert error["details"]["limit"] == ("import_s" if began else "load_s")
    assert ("under a new key" in error["remedy"]) or not began
    assert (row_of(again).pk == row_of(first).pk) == began
    assert again.json()["error"] == error
    steps = {step["name"]: step["status"] for step in row_of(first).steps}
    assert (steps["sandbox.wait"], steps["sandbox.load"]) == ("ok", "failed")
    page = auditor.client().get(f"/invocations/{row_of(first).wire_id}").content.decode()
    (shown,) = re.findall(r"<tr[^>]*>(?:(?!</tr>).)*sandbox\.load(?:(?!</tr>).)*</tr>", page, re.DOTALL)
    assert "failed" in shown.lower()


def test_who_is_told_that_a_tool_raised_learns_who_can_read_why(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    sandbox.outcome = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="why")

    remedy = caller.invoke("sample.tools.echo", {}).json()["error"]["remedy"]

    readers = [str(role) for role in Role if "evidence.reveal" in ROLE_PERMISSIONS[role]]
    assert readers == ["auditor"]
    assert "by default auditors" in remedy
    assert "author" not in remedy


@pytest.mark.unmapped
def test_what_breaks_inside_the_worker_still_gets_its_end(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()

    def breaks() -> None:
        raise RuntimeError("a mistake in the hub about canary-5f3a")

    sandbox.during = breaks

    answer = caller.invoke("sample.tools.echo", {})

    assert_problem(answer, 500, "UNKNOWN.INTERNAL")
    assert "canary-5f3a" not in answer.content.decode()
    assert kinds_of(row_of(answer)) == PAIR


@pytest.mark.unmapped
def test_an_ending_that_cannot_be_stored_is_an_end_all_the_same(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    sandbox.outcome = RunOutcome(RunStatus.OK, value={}, report={"ttl_seconds": 10**20})  # no column holds that

    answer = caller.invoke("sample.tools.echo", {})

    assert_problem(answer, 500, "UNKNOWN.INTERNAL")
    assert row_of(answer).state == "failed"
    assert kinds_of(row_of(answer)) == PAIR


def test_names_that_the_schema_does_not_know_stay_out_of_the_facts_and_do_not_fill_them(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()

    answer = caller.invoke("sample.tools.echo", {"text": "x"} | {"\x01" * 60 + str(number): 1 for number in range(40)})

    assert answer.status_code == 200
    assert kinds_of(row_of(answer)) == PAIR
    began = Fact.objects.get(kind="invocation.began")
    assert json.loads(bytes(began.leaf))["data"]["input"]["shape"] == {"text": "string(1)", "*": "40 more"}


def test_arguments_larger_than_the_tool_takes_are_refused_with_a_pair(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable(limits={"max_bytes_in": 64})
    grant()

    answer = caller.invoke("sample.tools.echo", {"text": "x" * 100})

    assert_problem(answer, 413, "REQUEST.TOO_LARGE")
    assert kinds_of(row_of(answer)) == PAIR
