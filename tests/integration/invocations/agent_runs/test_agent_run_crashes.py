"""Agent run crashes: does an agent run go on wherever a process dies, and is nothing done twice but a question to a model, once?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from evidence.models import Fact, Snapshot
from invocations.accept import begin_record
from invocations.agent_runs import orchestration, services
from invocations.agent_runs.models import AgentRun
from invocations.models import Invocation
from invocations.queue import outbox, sweeper
from invocations.queue.claims import has_queued_calls
from invocations.run import execution
from kernel.database.connections import database_time
from tests.support.agent_runs import list_calls, list_steps, propose, run_of, submit
from tests.support.budgets import Crash
from tests.support.calls import PAIR, kinds_of
from tests.support.concurrency import at_once
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller
    from tests.support.agent_runs import RunDriver
    from tests.support.calls import ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def asked(grant: Callable[..., Any], bench: ProviderBench, driver: RunDriver) -> None:
    grant()
    bench.scripts = [propose("a", "b"), propose("c"), text_answer("Done")]


def assert_done_once(run: AgentRun, sandbox: ScriptedSandbox, bench: ProviderBench) -> None:
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    assert [role for _, role, _ in list_steps(run)] == ["model", "tool", "tool", "model", "tool", "model"]
    assert [call.state for call in list_calls(run)] == ["succeeded"] * 6
    assert all(kinds_of(call) == PAIR for call in list_calls(run))
    assert list(Fact.objects.filter(subject=run.wire_id).order_by("id").values_list("kind", flat=True)) == [
        "agent_run.began",
        "agent_run.ended",
    ]
    assert (len(sandbox.calls), len(bench.requests)) == (3, 3)
    assert list(run.events.order_by("number").values_list("number", flat=True)) == list(range(1, 14))


POINTS: list[tuple[Any, str, int]] = [
    *((orchestration, "open_question", turn) for turn in (1, 2, 3, 4)),
    *((begin_record, "reserve_call_budgets", turn) for turn in (1, 2, 3, 4, 5)),
    *((orchestration, "note_event", turn) for turn in (1, 2, 5)),
    (services, "sum_cost", 1),
]


@pytest.mark.req("RUN-2")
@pytest.mark.parametrize(("module", "name", "turn"), POINTS)
def test_a_turn_that_breaks_off_leaves_nothing_and_is_taken_again(
    module: Any,
    name: str,
    turn: int,
    caller: Caller,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
    bench: ProviderBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, seen = getattr(module, name), []

    def sometimes(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        if len(seen) == turn:
            raise OperationalError("The connection is gone, and so is the transaction.")
        return found(*args, **kwargs)

    monkeypatch.setattr(module, name, sometimes)
    run = run_of(submit(caller))
    for _ in range(10):
        driver.drive()
        driver.look()

    assert len(seen) > turn
    assert_done_once(run, sandbox, bench)


@pytest.mark.req("RUN-2")
def test_a_run_that_nobody_took_on_is_found_by_the_loop(
    caller: Caller,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
    bench: ProviderBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process dies right after it has committed: no message is sent, and the turn that should follow is not taken."""
    going_on = orchestration.continue_run
    monkeypatch.setattr(orchestration, "continue_run", lambda run_id: None)
    monkeypatch.setattr(outbox, "notify_workers", lambda invocation: True)
    run = run_of(submit(caller))
    assert list_calls(run) == []

    for made in (1, 3, 4, 5, 6, 6):
        assert orchestration.find_due_runs() == [run.pk]
        going_on(run.pk)
        assert len(list_calls(run)) == made
        driver.ask_models()
        while has_queued_calls():  # each by the message that a sweeper sends for it
            execution.run_queued_calls()

    assert orchestration.find_due_runs() == []
    assert_done_once(run, sandbox, bench)


@pytest.mark.req("RUN-2")
def test_a_model_that_was_asked_by_a_process_that_died_is_asked_once_more(
    caller: Caller, driver: RunDriver, bench: ProviderBench
) -> None:
    bench.scripts = [text_answer("Done")]
    run = run_of(submit(caller))
    driver.begun.clear()  # with the process
    lose_open_calls()
    driver.drive()

    run.refresh_from_db()
    assert (run.state, list_steps(run)) == ("succeeded", [(1, "model", "succeeded")])
    assert [call.state for call in list_calls(run)] == ["outcome_unknown", "succeeded"]
    assert all(kinds_of(call) == PAIR for call in list_calls(run))


@pytest.mark.req("RUN-2")
def test_a_model_whose_processes_die_again_and_again_is_given_up(caller: Caller, driver: RunDriver) -> None:
    run = run_of(submit(caller))
    for _ in range(3):
        driver.begun.clear()
        lose_open_calls()
        driver.look()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("failed", "model_failed")
    assert [call.state for call in list_calls(run)] == ["outcome_unknown"] * 2


def lose_open_calls() -> None:
    Invocation.objects.filter(state="running").update(lease_until=database_time() - timedelta(seconds=1))
    sweeper.sweep_once()


@pytest.mark.req("RUN-2")
def test_of_many_who_take_a_run_on_at_once_one_makes_its_calls(
    caller: Caller, driver: RunDriver, sandbox: ScriptedSandbox, bench: ProviderBench
) -> None:
    run = run_of(submit(caller))
    for _ in range(6):
        at_once(8, lambda _: orchestration.continue_run(run.pk))
        driver.ask_models()
        execution.run_queued_calls()

    assert_done_once(run, sandbox, bench)


@pytest.mark.req("RUN-2")
def test_a_call_that_ends_while_a_turn_is_decided_on_is_not_taken_for_one_without_an_answer(
    caller: Caller,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
    bench: ProviderBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody sends the question again. The turn that follows reads the call of the model, and then that none is open."""
    run = run_of(submit(caller))
    (open_call,) = list_calls(run)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(orchestration, "continue_run", lambda run_id: None)
        driver.ask_models()
    found, read = orchestration._find_last_call, [open_call]
    monkeypatch.setattr(orchestration, "_find_last_call", lambda step: read.pop() if read else found(step))

    orchestration.continue_run(run.pk)
    driver.drive()

    assert_done_once(run, sandbox, bench)


@pytest.mark.req("RUN-2")
@pytest.mark.parametrize("why", ["cancelled", "seconds"])
def test_of_a_run_that_is_ended_early_the_outcome_of_each_call_is_noted(
    why: str, caller: Caller, driver: RunDriver
) -> None:
    run = run_of(submit(caller))
    driver.ask_models()
    if why == "cancelled":
        assert caller.delete(f"/runs/{run.wire_id}").status_code == 200
    else:
        AgentRun.objects.update(deadline_at=database_time())
        driver.look()

    run.refresh_from_db()
    assert run.stop_reason == why
    assert [state for _, role, state in list_steps(run) if role == "tool"] == ["failed", "failed"]


@pytest.mark.req("RUN-2")
def test_a_question_that_is_sent_many_times_at_once_is_one_run(caller: Caller, driver: RunDriver) -> None:
    answers: list[Any] = at_once(6, lambda _: submit(caller, headers={"Idempotency-Key": "once"}))

    assert {answer.status_code for answer in answers} == {202}
    assert (AgentRun.objects.count(), Invocation.objects.count()) == (1, 1)


@pytest.mark.req("RUN-2")
def test_a_run_whose_conversation_was_removed_meanwhile_ends_and_says_so(
    caller: Caller, driver: RunDriver, bench: ProviderBench
) -> None:
    run = run_of(submit(caller))
    driver.ask_models()
    Snapshot.objects.filter(invocation_id=list_calls(run)[0].pk, kind="output").delete()
    driver.bell.deliver()

    run.refresh_from_db()
    assert (run.state, run.stop_reason, run.reason) == ("failed", "hub_failed", "EVIDENCE.VALUES_ERASED")


@pytest.mark.req("RUN-2")
@pytest.mark.unmapped
def test_a_run_that_can_never_go_on_is_ended(
    caller: Caller, driver: RunDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any, **__: Any) -> Any:
        raise Crash

    monkeypatch.setattr(orchestration, "open_question", dies)
    run = run_of(submit(caller))

    run.refresh_from_db()
    assert (run.state, run.stop_reason, run.reason) == ("failed", "hub_failed", "UNKNOWN.INTERNAL")
