"""Chain crashes: does a chain go on wherever a process dies, and is no step made twice?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from access.budgets import ledger
from access.budgets.services import set_budget
from evidence.models import Fact
from invocations.accept import begin_record
from invocations.chains import orchestration, services
from invocations.chains.models import Chain
from invocations.chains.plan import read_plan
from invocations.models import Invocation
from invocations.queue import outbox, sweeper
from invocations.run import execution
from kernel.http.envelopes import RequestEnvelope
from tests.support.budgets import DAY, Crash, assert_conserved, balance
from tests.support.calls import kinds_of
from tests.support.chains import calls, chain_of, facts, of, states, step, submit, undo
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from access.models import Budget
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def budget(operator: Person) -> Budget:
    return set_budget(scope="tenant", dimension="calls", amount=10, window_s=DAY, by=operator.by)


def plan() -> tuple[dict[str, Any], ...]:
    return step("one", text="a", compensate=undo()), step("two", text=of("one")), step("three", text=of("two"))


def dies(*_: Any, **__: Any) -> Any:
    raise Crash


def take_on(bell: Bell) -> None:
    """What the loops of a worker that lives do, until nothing is left to do."""
    for _ in range(20):
        sweeper.sweep_once()
        bell.rung = bell.rung or [row.pk for row in Invocation.objects.filter(state="queued")]
        bell.deliver()
        for chain_id in orchestration.find_due_chains():
            orchestration.continue_chain(chain_id)


def assert_carried_out_once(chain: Chain, sandbox: ScriptedSandbox, budget: Budget) -> None:
    chain.refresh_from_db()
    assert (chain.state, states(chain)) == ("succeeded", ["succeeded"] * 3)
    assert [call.state for call in calls(chain)] == ["succeeded"] * 3
    assert all(kinds_of(call) == ["invocation.began", "invocation.ended"] for call in calls(chain))
    assert facts(chain) == ["chain.began", "chain.ended"]
    assert len(sandbox.calls) == 3
    assert balance(budget) == (3, 0)
    assert_conserved()


# Where a turn breaks off, and how often in the life of this chain it comes there: with nothing done, with the call decided on, with
# the call written down, and at the end with the chain's End written down and its budgets not given back.
POINTS: list[tuple[Any, str, int]] = [
    *((orchestration, "open_plan", turn) for turn in (1, 2, 3)),
    *((begin_record, "reserve_call_budgets", turn) for turn in (1, 2, 3)),
    *((orchestration, "build_chain_principal", turn) for turn in (1, 2, 3, 4)),
    (services, "_outcomes", 1),
    (ledger, "release_reservations", 1),
]


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(("module", "name", "turn"), POINTS)
def test_a_turn_that_breaks_off_leaves_nothing_and_is_taken_again(
    monkeypatch: pytest.MonkeyPatch,
    caller: Caller,
    chainable: None,
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
    budget: Budget,
    module: Any,
    name: str,
    turn: int,
) -> None:
    found = getattr(module, name)
    seen = []

    def sometimes(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        if len(seen) == turn:
            raise OperationalError("The connection is gone, and so is the transaction.")
        return found(*args, **kwargs)

    monkeypatch.setattr(module, name, sometimes)
    chain = chain_of(submit(caller, *plan()))
    take_on(bell)

    assert len(seen) > turn
    assert_carried_out_once(chain, sandbox, budget)


@pytest.mark.req("TOOLS-32")
def test_a_chain_that_nobody_took_on_is_found_by_the_loop(
    monkeypatch: pytest.MonkeyPatch,
    caller: Caller,
    chainable: None,
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
    budget: Budget,
) -> None:
    """Each process dies right after it has committed: the message is not sent, and the turn that should follow is not taken."""
    going_on = orchestration.continue_chain
    monkeypatch.setattr(orchestration, "continue_chain", lambda chain_id: None)
    monkeypatch.setattr(outbox, "notify_workers", lambda invocation: True)
    chain = chain_of(submit(caller, *plan()))
    assert calls(chain) == []

    for made in (1, 2, 3, 3):
        assert orchestration.find_due_chains() == [chain.pk]
        while orchestration.advance_chain(chain.pk):
            pass
        assert len(calls(chain)) == made
        assert [call.state for call in calls(chain)[-1:]] == ["queued" if chain_is_open(chain) else "succeeded"]
        execution.run_queued_calls()
    assert going_on is not orchestration.continue_chain

    assert orchestration.find_due_chains() == []
    assert_carried_out_once(chain, sandbox, budget)


def chain_is_open(chain: Chain) -> bool:
    chain.refresh_from_db()
    return not chain.is_final


@pytest.mark.req("TOOLS-32")
def test_of_many_who_take_a_chain_on_at_once_one_makes_its_call(
    caller: Caller, chainable: None, bell: Bell, sandbox: ScriptedSandbox, scripted: dict[str, Any], budget: Budget
) -> None:
    chain = chain_of(submit(caller, *plan()))
    for _ in range(3):
        at_once(8, lambda _: orchestration.continue_chain(chain.pk))
        execution.run_queued_calls()

    assert_carried_out_once(chain, sandbox, budget)


@pytest.mark.req("TOOLS-32")
def test_a_plan_that_is_sent_many_times_at_once_is_one_chain(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any], budget: Budget
) -> None:
    answers: list[Any] = at_once(6, lambda _: submit(caller, *plan(), headers={"Idempotency-Key": "once"}))

    assert {answer.status_code for answer in answers} == {202}
    assert Chain.objects.count() == 1
    assert balance(budget) == (0, 4)
    assert Invocation.objects.count() == 1


@pytest.mark.req("TOOLS-32")
def test_an_acceptance_that_breaks_off_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, caller: Caller, chainable: None, budget: Budget
) -> None:
    monkeypatch.setattr(services, "reserve_for_chain", dies)
    envelope = RequestEnvelope(request_id="test-request-1", actor={"type": "agent", "id": "x"})
    with pytest.raises(Crash):
        services.submit_chain(read_plan({"steps": list(plan())}), envelope, by=caller.by)

    assert (Chain.objects.count(), Fact.objects.filter(kind__startswith="chain.").count()) == (0, 0)
    assert balance(budget) == (0, 0)


@pytest.mark.req("TOOLS-32")
@pytest.mark.unmapped
def test_a_chain_that_can_never_go_on_is_ended(
    monkeypatch: pytest.MonkeyPatch,
    caller: Caller,
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
    budget: Budget,
) -> None:
    """What nobody has thought of does not come up again every second."""
    monkeypatch.setattr(orchestration, "open_plan", dies)
    chain = chain_of(submit(caller, *plan()))

    chain.refresh_from_db()
    assert (chain.state, chain.reason) == ("failed", "UNKNOWN.INTERNAL")
    assert balance(budget) == (0, 0)
    assert facts(chain) == ["chain.began", "chain.ended"]


@pytest.mark.req("TOOLS-32")
@pytest.mark.unmapped
@pytest.mark.parametrize(
    ("breaks_once", "compensated", "undone"), [(True, "all", "succeeded"), (False, "none", "skipped")]
)
def test_what_a_chain_has_done_that_can_never_go_on_is_undone_if_that_is_possible(
    breaks_once: bool,
    compensated: str,
    undone: str,
    monkeypatch: pytest.MonkeyPatch,
    caller: Caller,
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
    budget: Budget,
) -> None:
    chain = chain_of(submit(caller, *plan()))
    reads = services.open_plan
    broken = [True]

    def breaks(which: Chain) -> Any:
        if broken and (not breaks_once or broken.pop()):
            raise Crash
        return reads(which)

    monkeypatch.setattr(orchestration, "open_plan", breaks)
    bell.deliver()
    take_on(bell)

    chain.refresh_from_db()
    assert (chain.state, states(chain)) == ("failed", ["succeeded", "failed", "skipped"])
    assert states(chain, "compensation") == [undone]
    error = caller.get(f"/chains/{chain.wire_id}").json()["error"]
    assert error["details"]["compensated"] == compensated
    assert balance(budget)[1] == 0


@pytest.mark.req("TOOLS-32")
def test_a_database_that_does_not_answer_for_a_moment_ends_no_chain(
    monkeypatch: pytest.MonkeyPatch,
    caller: Caller,
    chainable: None,
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
    budget: Budget,
) -> None:
    advance: Callable[[UUID], bool] = orchestration.advance_chain

    def fails(chain_id: UUID) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(orchestration, "advance_chain", fails)
    chain = chain_of(submit(caller, *plan()))
    assert calls(chain) == []
    monkeypatch.setattr(orchestration, "advance_chain", advance)
    take_on(bell)

    assert_carried_out_once(chain, sandbox, budget)
