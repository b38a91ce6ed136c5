"""Run costs: does a run cost no more than it may, and does it say what it has cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from tests.support.agent_runs import list_calls, list_steps, propose, run_of, submit
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.connected_models import set_script_prices
from tests.support.model_calls import say
from tests.support.policies_in_force import permit, put_in_force
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = {"arguments": say("Which?", tools=["sample.tools.echo"], max_tokens=100)}


@pytest.fixture(autouse=True)
def priced(grant: Callable[..., Any], operator: Person, bench: ProviderBench, driver: RunDriver) -> None:
    """A token in or out costs one millionth of the currency."""
    grant()
    set_script_prices(operator.by, input="1", output="1")
    bench.scripts = [propose("a"), propose("b"), text_answer("Done!")]


@pytest.mark.req("LLM-7")
def test_a_run_says_what_its_calls_have_cost(caller: Caller, driver: RunDriver) -> None:
    run = run_of(submit(caller, **ASKED))
    driver.drive()

    costs = [step.cost_micros for step in run.steps.order_by("position")]
    assert costs == [15, 0, 15, 0, 11]
    body = caller.get(f"/runs/{run.wire_id}").json()["data"]
    assert (body["cost_micros"], [step["cost_micros"] for step in body["steps"]]) == (41, costs)


@pytest.mark.req("LLM-7")
def test_a_call_that_might_cost_more_than_is_left_is_not_made(
    caller: Caller, operator: Person, bench: ProviderBench, driver: RunDriver
) -> None:
    budget = set_budget(scope="tenant", dimension="money", amount=10**9, window_s=DAY, by=operator.by)
    first = run_of(submit(caller, **ASKED))
    reserved = first.steps.get().reserved_micros
    assert reserved > 100  # the whole of max_tokens, and the question
    driver.drive()
    used, asked = balance(budget)[0], len(bench.requests)

    run = run_of(submit(caller, **ASKED, limits={"cost_micros": reserved + 14}))
    bench.provider.chat.scripts = [*bench.provider.chat.scripts[:asked], *bench.scripts]  # type: ignore[union-attr]
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("stopped", "money")
    assert list_steps(run) == [(1, "model", "succeeded"), (1, "tool", "succeeded"), (2, "model", "skipped")]
    assert len(list_calls(run)) == 2
    assert balance(budget) == (used + 15, 0)
    assert_conserved()


@pytest.mark.req("LLM-7")
def test_what_a_policy_asks_for_a_tool_counts_as_well(caller: Caller, bench: ProviderBench, driver: RunDriver) -> None:
    price = {"id": "dear", "effect": "price", "when": {"tool": {"equals": "sample.tools.echo"}}, "amount_micros": 500}
    put_in_force(permit(), price, tenant=caller.agent.tenant)
    bench.scripts = [propose("a", "b"), text_answer("Done!")]
    run = run_of(submit(caller, **ASKED, limits={"cost_micros": 900}))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("stopped", "money")
    assert list_steps(run) == [(1, "model", "succeeded"), (1, "tool", "failed"), (1, "tool", "skipped")]
    assert [call.state for call in list_calls(run)] == ["succeeded", "cancelled"]


@pytest.mark.req("LLM-7")
def test_calls_without_a_price_are_said_to_have_none(
    caller: Caller, operator: Person, bench: ProviderBench, driver: RunDriver, connect: Callable[..., Any]
) -> None:
    connect(alias="free", provider="other")
    bench.provider = None
    run = run_of(submit(caller, **ASKED, model="model.other.free"))
    driver.drive()

    body = caller.get(f"/runs/{run.wire_id}").json()["data"]
    assert (body["cost_micros"], body["unpriced_calls"]) == (0, 3)
    assert [step["cost_micros"] for step in body["steps"]] == [None, 0, None, 0, None]
    assert "unpriced" in operator.client().get(f"/runs/{run.wire_id}").content.decode()
