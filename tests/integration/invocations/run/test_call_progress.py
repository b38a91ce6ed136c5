"""Call progress: what can be seen of a call while it runs, and how does its caller end it?"""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.urls import reverse

from evidence.models import Fact, Snapshot
from invocations.end import end_record
from invocations.models import Invocation, State
from invocations.run import cancellation, execution
from invocations.run.lease_heartbeat import end_run
from invocations.run.live_output import MAX_CHARS, MAX_LINES, LiveReport, read_live_output, write_live
from invocations.sandbox.base import RunEvent, RunStatus
from tests.support.calls import PAIR, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"
PATIENCE_S = 60
LOOKS = 200


@pytest.fixture
def queued(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    """A call that waits for a worker."""
    enable()
    grant()
    bell.answers = False
    return row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))


@pytest.mark.req("TOOLS-17", "SVC-7")
def test_what_a_tool_says_reaches_its_caller_while_it_runs_and_is_gone_afterwards(
    queued: Invocation, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    seen: list[dict[str, Any]] = []

    def speak() -> None:
        sandbox.tell(RunEvent("stdout", "for the author\nonly"))
        sandbox.tell(RunEvent("progress", progress={"log": "Two of four rows."}))
        sandbox.tell(RunEvent("progress", progress={"fraction": 0.5, "message": "Half of it"}))
        told = threading.Event()
        for _ in range(LOOKS):
            answer = caller.get(f"/invocations/{queued.wire_id}").json()
            if answer["call"].get("live", {}).get("progress"):
                seen.append(answer["call"]["live"])
                return
            told.wait(0.05)

    sandbox.during = speak

    execution.run_queued_calls()

    assert seen[0]["progress"]["fraction"] == 0.5
    assert seen[0]["progress"]["message"] == "Half of it"
    assert [line["text"] for line in seen[0]["log"]] == ["Two of four rows."]
    assert "for the author" not in str(seen)
    assert not Snapshot.objects.filter(invocation_id=queued.pk, kind="live").exists()
    assert "live" not in caller.get(f"/invocations/{queued.wire_id}").json()["call"]


def test_a_secret_is_in_nothing_that_is_said_meanwhile(queued: Invocation) -> None:
    report = LiveReport(queued, {"API_KEY": "tops3cret"})
    report._add("stdout", "key=tops3cret")
    report._note({"fraction": 0.1, "message": "with tops3cret"})

    document = report._document()

    assert "tops3cret" not in str(document)
    assert document["lines"][0]["text"] == "key=[secret API_KEY]"


def test_the_last_lines_are_kept_within_their_number_and_size(queued: Invocation) -> None:
    many, long = LiveReport(queued, {}), LiveReport(queued, {})
    for number in range(MAX_LINES + 5):
        many._add("stdout", str(number))
    for text in ("a" * MAX_CHARS, "b" * 10, "c" * (MAX_CHARS - 10), "d" * (MAX_CHARS + 1)):
        long._add("stdout", text)
        kept = [line["text"][:1] for line in long._document()["lines"]]
        assert kept == {"a": ["a"], "b": ["b"], "c": ["b", "c"], "d": ["d"]}[text[0]]

    lines = many._document()["lines"]
    assert [line["text"] for line in lines] == [str(number) for number in range(5, MAX_LINES + 5)]
    assert lines[0]["number"] == 6


def test_another_line_costs_the_same_however_many_are_kept(queued: Invocation) -> None:
    report = LiveReport(queued, {})

    def work() -> int:
        """Steps of the interpreter, lines and calls into C, that one more line takes."""
        steps = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal steps
            steps += 1
            return count

        sys.settrace(count)
        try:
            report._add("stdout", "")
        finally:
            sys.settrace(None)
        return steps

    first = work()
    for _ in range(MAX_LINES):
        report._add("stdout", "")

    assert work() <= first + 5


def test_where_the_answer_is_redacted_only_the_fraction_is_told(queued: Invocation) -> None:
    Invocation.objects.filter(pk=queued.pk).update(
        state=State.RUNNING, attempt=1, obligations=[{"mask": "/name"}], started_at=queued.created_at
    )
    queued.refresh_from_db()
    said = {"progress": {"fraction": 0.25, "message": "Jane Doe", "at": ""}, "lines": []}

    assert write_live(queued, said)

    queued.refresh_from_db()
    assert read_live_output(queued) == {"progress": {"fraction": 0.25}, "log": []}


def test_a_run_that_lost_its_call_says_nothing_more(queued: Invocation) -> None:
    assert not write_live(queued, {"progress": None, "lines": []})
    assert not Snapshot.objects.filter(invocation_id=queued.pk, kind="live").exists()


@pytest.mark.req("SVC-7")
def test_a_caller_ends_a_running_call_and_both_are_witnessed(
    queued: Invocation, caller: Caller, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()
    monkeypatch.setattr(sandbox, "kill", lambda name: killed.set())
    answers: list[Any] = []

    def cancelled_meanwhile() -> None:
        answers.append(caller.delete(f"/invocations/{queued.wire_id}"))
        assert killed.wait(PATIENCE_S)
        sandbox.outcome = replace(sandbox.outcome, status=RunStatus.CANCELLED, value=None)

    sandbox.during = cancelled_meanwhile

    execution.run_queued_calls()

    assert answers[0].status_code == 202, answers[0].json()
    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.CANCELLED, "REQUEST.CANCELLED")
    assert kinds_of(queued) == [PAIR[0], "invocation.cancel_asked", PAIR[1]]
    asked = Fact.objects.get(invocation_id=queued.pk, kind="invocation.cancel_asked")
    assert asked.actor_kind == "agent"
    again = caller.delete(f"/invocations/{queued.wire_id}")
    assert again.status_code == 409


def test_a_call_that_is_cancelled_before_its_box_is_there_has_not_run(
    queued: Invocation, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    sandbox.outcome = replace(sandbox.outcome, status=RunStatus.CANCELLED, value=None, box="")

    def cancelled_meanwhile() -> None:
        cancellation.request_cancellation(invocation=queued, by=caller.by)

    sandbox.during = cancelled_meanwhile

    execution.run_queued_calls()

    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.CANCELLED, "REQUEST.CANCELLED")
    error = caller.get(f"/invocations/{queued.wire_id}").json()["error"]
    assert error["message"] == "This call was cancelled before its tool was run."


def test_a_hub_that_stops_says_that_nothing_ran(queued: Invocation, sandbox: ScriptedSandbox) -> None:
    Invocation.objects.update(idempotency_key="again")
    sandbox.outcome = replace(sandbox.outcome, status=RunStatus.CANCELLED, value=None, box="")

    execution.run_queued_calls()

    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.CANCELLED, "SANDBOX.STOPPING")
    assert queued.idempotency_key == ""  # may be used again


def test_a_worker_that_stops_leaves_in_the_queue_what_it_has_not_begun(
    queued: Invocation, sandbox: ScriptedSandbox
) -> None:
    sandbox.closing = True

    execution.run_queued_calls()

    queued.refresh_from_db()
    assert queued.state == State.QUEUED
    assert kinds_of(queued) == PAIR[:1]


def test_a_database_that_does_not_answer_for_a_moment_costs_no_result(
    queued: Invocation, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "WRITE_AGAIN_S", 0.01)
    tries: list[int] = []

    def fails_once(*args: Any, **options: Any) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("a fail-over")
        return end_record.end_call(*args, **options)

    monkeypatch.setattr(execution, "end_call", fails_once)

    execution.run_queued_calls()

    queued.refresh_from_db()
    assert queued.state == State.SUCCEEDED
    assert kinds_of(queued) == PAIR


@pytest.mark.req("TOOLS-17")
def test_an_operator_ends_a_call_from_its_page(queued: Invocation, operator: Person, developer: Person) -> None:
    address = reverse("invocation", args=[queued.pk])
    button = reverse("invocation_cancel", args=[queued.pk])
    assert button in operator.client().get(address).content.decode()
    assert button not in developer.client().get(address).content.decode()

    answer = operator.client().post(button, follow=True)

    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.CANCELLED, "REQUEST.CANCELLED")
    page = answer.content.decode()
    assert "This call has ended." in page
    assert button not in page
    end = Fact.objects.get(invocation_id=queued.pk, kind=PAIR[1])
    assert (end.actor_kind, end.actor_id) == ("user", operator.by.id)
    assert operator.client().post(button).status_code == 409


def test_a_wish_that_comes_before_the_run_is_known_is_not_forgotten(
    queued: Invocation, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()
    monkeypatch.setattr(sandbox, "kill", lambda name: killed.set())
    end_run(queued.pk)
    sandbox.during = lambda: seen.append(killed.wait(PATIENCE_S))
    seen: list[bool] = []

    execution.run_queued_calls()

    assert seen == [True]
