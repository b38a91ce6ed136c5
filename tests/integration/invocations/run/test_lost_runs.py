"""Lost runs: what may be said of a call that was begun once, lost, and did not get to run again?"""

from __future__ import annotations

import queue
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from access.models import BudgetWindow
from evidence.models import Fact
from invocations.models import Invocation, State
from invocations.queue import sweeper
from invocations.queue.claims import claim_call
from invocations.run import execution, lease_heartbeat
from invocations.run.cancellation import cancel_call
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
KEY = {"Idempotency-Key": "order-1"}


def past() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=1)


@pytest.fixture
def lost_once(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    """A call of a keyed tool whose first worker was killed in the middle; it waits to be run again."""
    enable(idempotency="keyed")
    grant(calls_limit=10)
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"}))
    bell.rung.clear()
    assert claim_call() is not None
    Invocation.objects.update(lease_until=past())
    assert sweeper.close_overdue_call(row.pk)
    row.refresh_from_db()
    assert (row.state, row.attempt) == (State.QUEUED, 1)
    return row


def assert_unknown(row: Invocation, caller: Caller) -> None:
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.OUTCOME_UNKNOWN, "SANDBOX.WORKER_LOST")
    assert row.idempotency_key == "order-1"
    assert [kind for kind in kinds_of(row) if kind in PAIR] == PAIR
    assert_problem(caller.invoke(ECHO, {"text": "other"}, headers=KEY), 422, "IDEMPOTENCY.KEY_REUSED")
    assert BudgetWindow.objects.filter(budget__dimension="calls").get().used == 1


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_of_one_that_no_worker_takes_again_nobody_says_that_nothing_ran(lost_once: Invocation, caller: Caller) -> None:
    Invocation.objects.update(queue_deadline_at=past())

    sweeper.sweep_once()

    assert_unknown(lost_once, caller)


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_one_whose_next_run_does_not_begin_keeps_its_key(
    lost_once: Invocation, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    sandbox.outcome = RunOutcome(RunStatus.START_FAILED, error_message="no engine")

    execution.run_queued_calls()

    assert_unknown(lost_once, caller)


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_one_whose_tool_was_paused_meanwhile_keeps_its_key(
    lost_once: Invocation, caller: Caller, operator: Person, sandbox: ScriptedSandbox
) -> None:
    Invocation.objects.update(grant=None)

    execution.run_queued_calls()

    assert sandbox.calls == []
    assert_unknown(lost_once, caller)


def test_one_that_is_cancelled_before_it_runs_again_is_not_said_never_to_have_started(
    lost_once: Invocation, caller: Caller
) -> None:
    cancelled = cancel_call(invocation_id=lost_once.pk, by=caller.by)

    assert cancelled.state == State.CANCELLED
    assert cancelled.idempotency_key == "order-1"
    said = caller.get(f"/invocations/{cancelled.wire_id}").json()["error"]["message"]
    assert "before it started" not in said


@pytest.mark.req("TOOLS-17")
def test_one_that_its_caller_has_cancelled_does_not_run_again(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable(idempotency="keyed")
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"}))
    sandbox.outcome = RunOutcome(RunStatus.LOST)

    def give_it_up() -> None:
        cancel_call(invocation_id=row.pk, by=caller.by)

    sandbox.during = give_it_up

    bell.deliver()

    row.refresh_from_db()
    assert row.is_final
    assert len(sandbox.calls) == 1
    assert Fact.objects.filter(invocation_id=row.pk, kind="invocation.retried").count() == 0


# Workers that were away for longer than their lease.


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_a_worker_that_was_away_between_claim_and_run_does_not_begin_a_call_that_was_closed_meanwhile(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))
    claimed = claim_call()
    assert claimed is not None
    Invocation.objects.update(lease_until=past(), started_at=past() - timedelta(hours=1))
    claimed.refresh_from_db(fields=["started_at"])
    assert sweeper.close_overdue_call(row.pk)

    execution.run_claimed_call(claimed)

    assert sandbox.calls == []
    assert kinds_of(row) == PAIR


def test_a_run_that_was_lost_leaves_the_watch_over_the_next_one_of_its_call(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    monkeypatch.setattr(sandbox, "kill", ended.put)
    enable(idempotency="keyed")
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))
    first = claim_call()
    assert first is not None

    with lease_heartbeat.keep_lease(first):
        Invocation.objects.update(lease_until=past())
        assert sweeper.close_overdue_call(row.pk)
        second = claim_call()
        assert second is not None
        later = lease_heartbeat.keep_lease(second)
        later.__enter__()
    lease_heartbeat.end_run(row.pk)

    assert ended.get(timeout=30) == f"{row.wire_id}-2"
    later.__exit__(None, None, None)


@pytest.mark.unmapped
@pytest.mark.django_db(transaction=True)  # the thread that ends runs counts the error over a connection of its own
def test_a_run_that_cannot_be_ended_at_once_is_ended_all_the_same(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    first = iter([True])

    def fails_at_first(name: str) -> None:
        if next(first, False):
            raise OSError(9, "bad file descriptor")
        ended.put(name)

    monkeypatch.setattr(sandbox, "kill", fails_at_first)
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))
    claimed = claim_call()
    assert claimed is not None

    with lease_heartbeat.keep_lease(claimed):
        lease_heartbeat.end_run(row.pk)
        assert ended.get(timeout=30) == f"{row.wire_id}-1"
