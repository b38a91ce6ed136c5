"""Chain budgets: does a chain that was accepted have the budget for all of its calls, and is the balance exact whatever becomes
of it?
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from access.budgets import ledger
from access.budgets.services import change_budget, set_budget
from access.consents.services import approve_consent
from access.models import Budget, BudgetWindow, Reservation
from invocations.chains import orchestration
from invocations.chains.models import Chain
from invocations.models import Invocation
from invocations.queue import sweeper
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.calls import assert_problem, writer
from tests.support.chains import calls, chain_of, of, states, step, submit, undo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
FAILS = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="no")


@pytest.fixture
def five_calls(operator: Person) -> Budget:
    return set_budget(scope="tenant", dimension="calls", amount=5, window_s=DAY, by=operator.by)


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_the_whole_is_held_before_the_first_step_and_the_rest_comes_back_at_the_end(
    caller: Caller, five_calls: Budget, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    scripted["bad"] = FAILS
    steps = step("one", compensate=undo()), step("two", text="bad"), step("three", compensate=undo())
    chain = chain_of(submit(caller, *steps))

    assert balance(five_calls) == (0, 5)
    assert_problem(caller.invoke("sample.tools.echo", {"text": "x"}), 429, "QUOTA.BUDGET_EXCEEDED")
    assert_problem(submit(caller, step("other")), 429, "QUOTA.BUDGET_EXCEEDED")
    assert_conserved()

    bell.deliver()

    chain.refresh_from_db()
    assert chain.state == "failed"
    assert balance(five_calls) == (3, 0)  # two steps and what undid the first
    assert_conserved()
    assert not Reservation.objects.filter(settled=None).exists()


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_every_dimension_is_held_for_as_much_as_the_calls_may_take(
    caller: Caller, operator: Person, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    budgets = [
        set_budget(
            scope="agent", agent_id=caller.agent.pk, dimension=dimension, amount=10**12, window_s=DAY, by=operator.by
        )
        for dimension in ("calls", "bytes_in", "bytes_out", "cpu_ms")
    ]
    submit(caller, step("one"), step("two", text=of("one")))
    held = [balance(budget)[1] for budget in budgets]
    drawn = {
        each.window.budget.dimension: each.amount
        for each in Reservation.objects.filter(invocation_id=calls(Chain.objects.get())[0].pk)
    }
    bell.deliver()

    assert held[0] == 2
    assert held[1] > 1000  # how large the arguments of the second will be is not known
    assert held[2] == 2 * drawn["bytes_out"]
    assert held[3] == 2 * drawn["cpu_ms"]
    assert all(balance(budget)[1] == 0 for budget in budgets)
    assert_conserved()


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_a_limit_that_is_lowered_does_not_stop_a_chain_that_was_accepted(
    caller: Caller, operator: Person, five_calls: Budget, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("one"), step("two"), step("three")))
    change_budget(budget_id=five_calls.pk, amount=1, reason="less", by=operator.by)
    bell.deliver()

    assert states(chain) == ["succeeded"] * 3
    assert balance(five_calls) == (3, 0)


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_steps_count_in_the_window_in_which_the_chain_was_accepted(
    caller: Caller, five_calls: Budget, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("one"), step("two")))
    BudgetWindow.objects.filter(budget=five_calls).update(number=7)  # days have gone by
    bell.deliver()

    assert states(chain) == ["succeeded"] * 2
    assert list(five_calls.windows.values_list("number", "used", "reserved")) == [(7, 2, 0)]
    assert_conserved()


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_the_sweeper_leaves_alone_what_an_open_chain_holds(
    caller: Caller, five_calls: Budget, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    submit(caller, step("one"), step("two"))
    Reservation.objects.update(created_at=datetime.now(UTC) - timedelta(days=1))

    assert sweeper.settle_lost_budgets() == 0
    assert balance(five_calls) == (0, 2)


@pytest.mark.req("TOOLS-29", "TOOLS-32")
def test_a_chain_that_a_cancellation_stops_gives_back_what_it_holds(
    caller: Caller, five_calls: Budget, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("one"), step("two")))
    answer = caller.delete(f"/chains/{chain.wire_id}")

    assert answer.json()["data"]["state"] == "cancelled"
    assert balance(five_calls) == (0, 0)
    assert_conserved()


@pytest.mark.req("TOOLS-32")
def test_a_step_for_which_there_is_no_place_waits_and_leaves_no_refused_call(
    caller: Caller, operator: Person, chainable: None, bell: Bell, scripted: dict[str, Any], sandbox: ScriptedSandbox
) -> None:
    one = set_budget(scope="tenant", dimension="concurrency", amount=1, window_s=0, by=operator.by)
    chain = chain_of(submit(caller, step("one"), step("two")))
    window = one.windows.get()
    BudgetWindow.objects.filter(pk=window.pk).update(reserved=2)  # somebody else runs as well
    bell.deliver()

    chain.refresh_from_db()
    assert (chain.state, states(chain), len(calls(chain))) == ("running", ["succeeded", "waiting"], 1)
    assert chain.next_at is not None
    BudgetWindow.objects.filter(pk=window.pk).update(reserved=0)
    Chain.objects.filter(pk=chain.pk).update(next_at=datetime.now(UTC))
    orchestration.continue_chain(chain.pk)
    bell.deliver()

    assert states(chain) == ["succeeded"] * 2
    assert ledger.open_since(datetime.now(UTC), limit=10) == []


@pytest.mark.req("TOOLS-32")
def test_a_step_that_finds_no_place_for_a_day_has_failed(
    caller: Caller, operator: Person, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    one = set_budget(scope="tenant", dimension="concurrency", amount=1, window_s=0, by=operator.by)
    chain = chain_of(submit(caller, step("one", compensate=undo()), step("two")))
    BudgetWindow.objects.filter(budget=one).update(reserved=2)  # somebody else runs as well
    bell.deliver()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    Chain.objects.update(next_at=yesterday)
    orchestration.continue_chain(chain.pk)
    assert states(chain) == ["succeeded", "waiting"]

    Invocation.objects.update(finished_at=yesterday)
    Chain.objects.update(next_at=yesterday)
    orchestration.continue_chain(chain.pk)

    chain.refresh_from_db()
    assert (chain.state, states(chain)) == ("compensating", ["succeeded", "failed"])
    assert chain.steps.get(name="two").reason == "QUOTA.CONCURRENCY"
    BudgetWindow.objects.filter(budget=one).update(reserved=0)
    Chain.objects.update(next_at=yesterday)
    orchestration.continue_chain(chain.pk)
    bell.deliver()
    chain.refresh_from_db()
    assert (chain.state, states(chain, "compensation")) == ("failed", ["succeeded"])


@pytest.mark.req("TOOLS-32")
def test_a_step_that_a_person_agrees_to_when_there_is_no_place_waits_too(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Any],
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
) -> None:
    writer(enable)
    one = set_budget(scope="tenant", dimension="concurrency", amount=1, window_s=0, by=operator.by)
    chain = chain_of(submit(caller, step("one"), step("two", "write"), on_consent="hold", purpose="to write it down"))
    bell.deliver()
    consent_id = calls(chain)[1].consent_id
    assert consent_id is not None
    BudgetWindow.objects.filter(budget=one).update(reserved=1)  # somebody else runs

    approve_consent(consent_id=consent_id, reason="because of a test", by=operator.by)

    assert states(chain) == ["succeeded", "waiting"]
    BudgetWindow.objects.filter(budget=one).update(reserved=0)
    Chain.objects.update(next_at=datetime.now(UTC))
    for id in orchestration.find_due_chains():
        orchestration.continue_chain(id)
    bell.deliver()
    chain.refresh_from_db()
    assert (chain.state, [call.state for call in calls(chain)]) == ("succeeded", ["succeeded", "denied", "succeeded"])
    assert {call.consent_id for call in calls(chain)[1:]} == {consent_id}  # nobody is asked twice
    assert_conserved()
