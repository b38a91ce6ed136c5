"""Worker: does a real worker do what the tests' stand-in does, and hold nothing while a tool runs?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from invocations import services
from invocations.answer.wake_ups import InProcessWaker
from invocations.end import end_record
from invocations.end.outcomes import build_ending
from invocations.models import Invocation
from invocations.queue import claims as queue_claims
from invocations.run import execution, lease_heartbeat
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from invocations.run.lease_heartbeat import RunWatch
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"


@pytest.fixture
def granted(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    """The echo tool may be called."""
    enable()
    grant()


def test_nothing_of_the_database_is_held_while_a_tool_runs(
    granted: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    seen: list[tuple[bool, bool]] = []
    sandbox.during = lambda: seen.append((connection.in_atomic_block, connection.connection is None))

    answer = caller.invoke(ECHO, {"text": "x"})

    assert answer.status_code == 200
    assert seen == [(False, True)]


def test_nothing_of_the_database_is_held_while_a_caller_waits(
    granted: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, bool]] = []
    deliver = bell.deliver

    def look_and_deliver() -> None:
        seen.append((connection.in_atomic_block, connection.connection is None))
        deliver()

    monkeypatch.setattr(bell, "deliver", look_and_deliver)

    caller.invoke(ECHO, {"text": "x"})

    assert seen == [(False, True)]


def test_a_heartbeat_keeps_the_lease_and_ends_the_box_of_a_call_that_was_closed(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.TOOLHUB_LEASE_S = 0.03
    enable()
    grant()
    killed = threading.Event()
    kill = sandbox.kill

    def kill_and_tell(name: str) -> None:
        kill(name)
        killed.set()

    monkeypatch.setattr(sandbox, "kill", kill_and_tell)

    def until_the_box_is_ended() -> None:
        Invocation.objects.update(attempt=99)  # somebody else has the call now
        assert killed.wait(timeout=30)

    sandbox.during = until_the_box_is_ended
    bell.answers = False
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))

    execution.run_queued_calls()

    assert set(sandbox.killed) == {f"{row.wire_id}-1"}
    assert kinds_of(row) == PAIR[:1]


@pytest.mark.req("TOOLS-20")
def test_the_lease_is_kept_while_the_result_is_judged(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that has succeeded is not to be taken for lost while its artifacts are looked through."""
    settings.TOOLHUB_LEASE_S = 3
    enable()
    grant()
    judged, renewed = threading.Event(), threading.Event()
    keep_leases = lease_heartbeat._keep_leases

    def keep_and_tell(watches: list[RunWatch]) -> dict[UUID, bool]:
        kept = keep_leases(watches)
        if any(kept.values()) and judged.is_set():
            renewed.set()
        return kept

    def judge_for_long(*what: Any, **within: Any) -> Any:
        judged.set()
        assert renewed.wait(timeout=30)
        return build_ending(*what, **within)

    monkeypatch.setattr(lease_heartbeat, "_keep_leases", keep_and_tell)
    monkeypatch.setattr(execution, "build_ending", judge_for_long)
    bell.answers = False
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))

    execution.run_queued_calls()

    row.refresh_from_db()
    assert row.state == "succeeded"


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_a_run_whose_lease_cannot_be_renewed_ends_while_the_database_still_keeps_its_worker_waiting(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.TOOLHUB_LEASE_S = 0.3
    enable()
    grant()
    asked, killed, over = threading.Event(), threading.Event(), threading.Event()

    def waits_for_the_database(watches: list[RunWatch]) -> dict[UUID, bool]:
        asked.set()
        over.wait(30)
        return {}

    monkeypatch.setattr(sandbox, "kill", lambda name: killed.set())

    def until_the_run_is_ended() -> None:
        monkeypatch.setattr(lease_heartbeat, "_keep_leases", waits_for_the_database)
        assert asked.wait(30)
        assert killed.wait(30)
        over.set()

    sandbox.during = until_the_run_is_ended

    caller.invoke(ECHO, {"text": "x"})

    assert killed.is_set()


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_threads_that_outlive_a_call_ask_no_settings(
    granted: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others are put in their place settings answer no thread, and one that asks then ends."""
    settings.TOOLHUB_LEASE_S = 0.3
    asked_by: set[str] = set()
    renewed = threading.Event()
    keep_leases = lease_heartbeat._keep_leases

    class Answers:
        def __getattr__(self, name: str) -> Any:
            asked_by.add(threading.current_thread().name)
            return getattr(settings, name)

    def keep_and_tell(watches: list[RunWatch]) -> dict[UUID, bool]:
        kept = keep_leases(watches)
        renewed.set()
        return kept

    monkeypatch.setattr(lease_heartbeat, "settings", Answers())
    monkeypatch.setattr(lease_heartbeat, "_keep_leases", keep_and_tell)

    def until_renewed() -> None:
        renewed.wait(30)

    sandbox.during = until_renewed

    caller.invoke(ECHO, {"text": "x"})

    assert renewed.is_set()
    assert asked_by == {threading.current_thread().name}


@pytest.mark.req("CARD-5")
def test_calls_at_once_through_the_queue_get_each_their_own_answer(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], worker: None
) -> None:
    enable()
    grant()

    answers = at_once(6, lambda number: caller.invoke(ECHO, {"text": str(number)}))

    said = [answer.json() for answer in answers]  # type: ignore[union-attr]
    assert [one["error"] for one in said] == [None] * 6
    assert [one["data"]["text"] for one in said] == [str(number) for number in range(6)]
    for answer in answers:
        assert kinds_of(row_of(answer)) == PAIR


def test_a_caller_is_woken_when_the_end_is_committed_and_not_before(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    woken: list[str] = []

    class Watching:
        def wake(self, invocation_id: Any) -> None:
            assert not connection.in_atomic_block
            woken.append(Invocation.objects.get(pk=invocation_id).state)

    monkeypatch.setattr(end_record, "get_waker", Watching)

    caller.invoke(ECHO, {"text": "x"})

    assert woken == ["succeeded"]


def test_a_wake_up_reaches_everybody_who_listens_for_this_call() -> None:
    waker = InProcessWaker()
    mine, other = Invocation().pk, Invocation().pk

    with waker.listen(mine) as first, waker.listen(mine) as second, waker.listen(other):
        waker.wake(mine)
        first.wait(30)
        second.wait(30)
        waker.wake(other)
    waker.wake(mine)  # nobody listens any more

    assert waker._waiters == {}


def test_services_listen_before_they_send(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    order: list[str] = []
    listen, ring = bell.listen, services.enqueue_call
    monkeypatch.setattr(bell, "listen", lambda row: order.append("listen") or listen(row))  # type: ignore[func-returns-value]
    monkeypatch.setattr(services, "enqueue_call", lambda row, **more: order.append("send") or ring(row, **more))  # type: ignore[func-returns-value]

    caller.invoke(ECHO, {"text": "x"})

    assert order == ["listen", "send"]


def test_a_message_for_which_nothing_waits_sets_nobody_else_looking(
    granted: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, inner = list[list[Invocation]](), queue_claims.claim_calls

    def counted(*given: Any) -> list[Invocation]:
        claims.append(inner(*given))
        return claims[-1]

    monkeypatch.setattr(queue_claims, "claim_calls", counted)
    sandbox.during = execution.run_queued_calls  # another message is heard while the tool runs

    caller.invoke(ECHO, {"text": "x"})

    assert [[call.tool for call in claimed] for claimed in claims] == [[ECHO], []]


def test_a_call_that_comes_while_somebody_works_here_is_taken_at_once(
    granted: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    seen = []

    def another_comes() -> None:
        sandbox.during, bell.answers = (lambda: None), False
        other = caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"})
        bell.answers = True
        execution.run_queued_calls()
        seen.append(row_of(other).state)

    sandbox.during = another_comes
    caller.invoke(ECHO, {"text": "x"})

    assert seen == ["succeeded"]
