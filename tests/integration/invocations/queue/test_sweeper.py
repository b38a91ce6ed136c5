"""The sweeper: is everything repaired that a crash can leave, exactly once?"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from access.consents import services as consents
from access.models import Consent
from evidence.models import Fact
from invocations.end.end_record import build_caller_principal, end_call
from invocations.end.endings import Ending
from invocations.models import FINAL, TRANSITIONS, Attempt, Invocation, State
from invocations.problems import CALL_AGAIN, OutcomeUnknown
from invocations.queue import sweeper
from invocations.queue.claims import claim_call
from invocations.queue.outbox import LOST_MESSAGE_AFTER
from invocations.run import execution
from kernel import loops
from kernel.observability.log_context import read_log_field
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.concurrency import at_once
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

ECHO = "sample.tools.echo"
pytestmark = pytest.mark.django_db


@pytest.fixture
def queued(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    """A call that was accepted; its message was sent, and nobody has taken it."""
    enable()
    grant()
    return row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))


def past(seconds: float = 1) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def running(invocation: Invocation) -> Invocation:
    """As a worker leaves it that was killed in the middle."""
    claimed = claim_call()
    assert claimed is not None
    Invocation.objects.filter(pk=invocation.pk).update(lease_until=past())
    return claimed


@pytest.mark.req("TOOLS-18")
def test_a_call_that_nobody_started_in_time_is_timed_out(queued: Invocation, caller: Caller) -> None:
    Invocation.objects.update(queue_deadline_at=past())

    assert sweeper.sweep_once()["closed"] == 1

    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.TIMED_OUT, "QUEUE.TIMEOUT")
    assert kinds_of(queued) == PAIR
    answer = caller.get(f"/invocations/{queued.wire_id}").json()
    assert answer["error"]["code"] == "TIMEOUT"
    assert answer["error"]["retryable"] == "yes"


@pytest.mark.req("TOOLS-18")
def test_a_worker_that_was_killed_leaves_an_unknown_outcome(queued: Invocation) -> None:
    running(queued)

    assert sweeper.sweep_once()["closed"] == 1

    queued.refresh_from_db()
    assert (queued.state, queued.reason) == (State.OUTCOME_UNKNOWN, "SANDBOX.WORKER_LOST")
    assert kinds_of(queued) == PAIR
    attempt = queued.attempts.get()
    assert attempt.finished_at is not None
    end = Fact.objects.get(invocation_id=queued.pk, kind="invocation.ended")
    assert (end.actor_kind, end.actor_id, end.outcome) == ("system", "system:sweeper", "outcome_unknown")


def test_the_lines_about_a_closed_call_say_which_call_of_which_tenant(
    queued: Invocation, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = row_of(caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"}))
    Invocation.objects.update(queue_deadline_at=past())
    stop, sweep = threading.Event(), sweeper.sweep_once
    known: dict[str, dict[str, str]] = {}

    def once() -> dict[str, int]:
        stop.set()
        return sweep()

    def or_break(invocation: Invocation, *given: Any, **more: Any) -> bool:
        if invocation.pk == poisoned.pk:
            raise ValueError("this one is poisoned")
        return end_call(invocation, *given, **more)

    def note(sentence: str, *_: object) -> None:
        known[sentence] = {field: read_log_field(field) for field in ("call_id", "tenant")}

    monkeypatch.setattr(sweeper, "sweep_once", once)
    monkeypatch.setattr(sweeper, "end_call", or_break)
    monkeypatch.setattr(loops, "release_connection", lambda: None)
    for level in ("warning", "exception"):
        monkeypatch.setattr(sweeper.log, level, note)

    sweeper.run_sweeper(stop)

    tenant = str(queued.tenant_id)
    assert known == {
        "%s was closed as %s": {"call_id": queued.wire_id, "tenant": tenant},
        "%s cannot be closed and is tried again": {"call_id": poisoned.wire_id, "tenant": tenant},
    }


@pytest.mark.unmapped
def test_one_call_that_cannot_be_closed_keeps_no_other_open(
    queued: Invocation, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = row_of(caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"}))
    running(queued)
    running(first)
    close = sweeper.close_overdue_call

    def break_at_first(invocation_id: object) -> bool:
        if invocation_id == first.pk:
            raise ValueError("this one is poisoned")
        return close(queued.pk)

    monkeypatch.setattr(sweeper, "close_overdue_call", break_at_first)

    assert sweeper.sweep_once()["closed"] == 1
    queued.refresh_from_db()
    assert queued.is_final


def test_a_call_within_its_time_is_left_alone(queued: Invocation) -> None:
    assert not any(sweeper.sweep_once().values())
    claim_call()
    assert not any(sweeper.sweep_once().values())
    assert kinds_of(queued) == PAIR[:1]


def test_a_late_worker_discards_its_result(queued: Invocation, sandbox: ScriptedSandbox, bell: Bell) -> None:
    def meanwhile() -> None:
        Invocation.objects.update(lease_until=past())
        assert sweeper.close_overdue_call(queued.pk)

    sandbox.during = meanwhile

    bell.deliver()

    queued.refresh_from_db()
    assert queued.state == State.OUTCOME_UNKNOWN
    assert queued.output_digest == ""
    assert kinds_of(queued) == PAIR


def test_a_worker_of_an_earlier_attempt_cannot_end_a_later_one(queued: Invocation) -> None:
    claimed = running(queued)
    Invocation.objects.update(attempt=2)

    ended = end_call(
        claimed, Ending(state=State.SUCCEEDED, output={}), actor=build_caller_principal(claimed), attempt=1
    )

    assert not ended
    assert kinds_of(queued) == PAIR[:1]


def test_a_message_that_arrives_twice_runs_the_call_once(
    queued: Invocation, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    bell.rung *= 3

    bell.deliver()

    assert len(sandbox.calls) == 1
    assert Attempt.objects.count() == 1
    assert kinds_of(queued) == PAIR


def test_a_lost_message_is_sent_again_but_not_at_once(queued: Invocation, bell: Bell) -> None:
    bell.rung.clear()  # the broker forgot it
    sweeper.sweep_once()
    assert bell.rung == []
    Invocation.objects.update(notified_at=past(LOST_MESSAGE_AFTER.total_seconds() + 1))

    assert sweeper.sweep_once()["resent"] == 1
    assert sweeper.sweep_once()["resent"] == 0  # its time counts anew

    assert bell.rung == [queued.pk]
    bell.deliver()
    queued.refresh_from_db()
    assert queued.state == State.SUCCEEDED


def test_a_message_that_was_never_sent_is_relayed(queued: Invocation, bell: Bell) -> None:
    bell.rung.clear()
    Invocation.objects.update(notified_at=past(60))  # the process died between commit and sending

    sweeper.sweep_once()

    assert bell.rung == [queued.pk]


def test_what_runs_out_is_written_down(
    queued: Invocation, caller: Caller, operator: Person, submit: Callable[..., Any]
) -> None:
    asked = consents.request_consent(tool=ECHO, versions="^1", purpose="x", validity_s=60, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="fine", by=operator.by)
    Consent.objects.update(expires_at=past())

    assert sweeper.sweep_once()["consents_expired"] == 1
    assert sweeper.sweep_once()["consents_expired"] == 0

    asked.refresh_from_db()
    assert asked.state == "expired"
    fact = Fact.objects.get(kind="consent.expired")
    assert (fact.subject, fact.actor_id) == (asked.wire_id, "system:upkeep")


@pytest.mark.unmapped
def test_the_loop_goes_on_after_a_pass_that_failed(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TOOLHUB_SWEEP_INTERVAL_S = 0
    passes: list[int] = []
    stop = threading.Event()

    def one() -> dict[str, int]:
        passes.append(1)
        if len(passes) == 3:
            stop.set()
        raise RuntimeError("broken")

    monkeypatch.setattr(sweeper, "sweep_once", one)
    monkeypatch.setattr(loops, "release_connection", lambda: None)

    sweeper.run_sweeper(stop)

    assert len(passes) == 3


# Closers that race.


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("started", [False, True], ids=["queued", "running"])
def test_many_closers_write_one_end(queued: Invocation, started: bool) -> None:
    if started:
        running(queued)
    else:
        Invocation.objects.update(queue_deadline_at=past())

    won = at_once(6, lambda number: sweeper.close_overdue_call(queued.pk))

    assert sorted(map(bool, won)) == [False] * 5 + [True], won
    assert kinds_of(queued) == PAIR


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-18")
def test_a_worker_and_the_sweeper_write_one_end_between_them(queued: Invocation) -> None:
    claimed = running(queued)

    def close(number: int) -> bool:
        if number % 2:
            return sweeper.close_overdue_call(queued.pk)
        ending = Ending(state=State.SUCCEEDED, output={"number": number})
        return end_call(claimed, ending, actor=build_caller_principal(claimed), attempt=claimed.attempt)

    won = at_once(6, close)

    assert won.count(True) == 1, won
    assert won.count(False) == 5, won
    assert kinds_of(queued) == PAIR


@pytest.mark.django_db(transaction=True)
def test_many_workers_with_one_message_run_the_call_once(queued: Invocation, sandbox: ScriptedSandbox) -> None:
    at_once(6, lambda number: execution.run_queued_calls())

    assert len(sandbox.calls) == 1
    assert kinds_of(queued) == PAIR


@pytest.mark.django_db(transaction=True)
def test_many_sweepers_send_a_lost_message_once(queued: Invocation, bell: Bell) -> None:
    bell.rung.clear()
    Invocation.objects.update(notified_at=past(60))

    done = at_once(4, lambda number: sweeper.sweep_once())

    assert sum(each["resent"] for each in done if isinstance(each, dict)) == 1, done
    assert bell.rung == [queued.pk]


@pytest.mark.parametrize("state", list(State))
def test_a_call_moves_only_along_its_transitions(state: State, queued: Invocation) -> None:
    now = datetime.now(UTC)
    reached = set()
    for to in State:
        with transaction.atomic():
            Invocation.objects.filter(pk=queued.pk).update(state=state, finished_at=now if state in FINAL else None)
            if Invocation.objects.move(queued.pk, to=to, attempt=0, finished_at=now if to in FINAL else None):
                reached.add(to)
            transaction.set_rollback(True)  # these are no ends of calls, and have none of the facts of one

    assert reached == set(TRANSITIONS[state])


def test_a_final_state_is_never_left_by_finish(queued: Invocation) -> None:
    problem = OutcomeUnknown()
    actor = build_caller_principal(queued)
    first = end_call(queued, Ending(state=State.CANCELLED, problem=problem), actor=actor, attempt=0)
    again = [end_call(queued, Ending(state=State(state), problem=problem), actor=actor, attempt=0) for state in FINAL]

    assert first
    assert not any(again)
    assert kinds_of(queued) == PAIR


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("manifest", "remedy"),
    [
        ({"side_effect": "None"}, CALL_AGAIN),
        ({"side_effect": "Read"}, CALL_AGAIN),
        ({"side_effect": "Network", "capabilities": {"net": [{"host": "api.example.org"}]}}, OutcomeUnknown.cure),
    ],
)
def test_who_lost_a_call_looks_for_an_effect_only_where_the_tool_may_have_had_one(
    manifest: dict[str, Any],
    remedy: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda profile, *, by_gate=False: ())
    put_in_force(permit())
    enable(**manifest)
    grant()
    answer = caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.json()
    lost = running(row_of(answer))

    assert sweeper.close_overdue_call(lost.pk)

    told = Client().get(f"/api/v1/invocations/{lost.wire_id}", headers=caller.headers()).json()
    assert told["error"]["remedy"] == remedy
    assert remedy in operator.client().get(reverse("invocation", args=[lost.pk])).content.decode()
