"""Run limits: does a run under limits of 5 steps, 1 cent, 10 seconds and 3 equal calls stop at each by its own name, and no sooner?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.agent_runs import orchestration, services
from invocations.models import Invocation
from kernel.database.connections import database_time
from tests.support.agent_runs import ECHO, list_calls, list_steps, propose, run_of, submit
from tests.support.connected_models import set_script_prices
from tests.support.model_calls import say
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.agent_runs.models import AgentRun
    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
CENT = 10_000  # millionths
LIMITS = {"steps": 5, "cost_micros": CENT, "seconds": 10, "equal_calls": 3}


@pytest.fixture(autouse=True)
def granted(grant: Callable[..., Any], driver: RunDriver) -> None:
    grant()


@pytest.fixture(autouse=True)
def passed(tenant: object, monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """How much time has passed for runs, as the test says: none, however slow the machine."""
    began, passed = database_time(), [timedelta(0)]
    for module in (services, orchestration):
        monkeypatch.setattr(module, "database_time", lambda: began + passed[0])
    return passed


def assert_stopped(run: AgentRun, why: str, caller: Caller) -> None:
    run.refresh_from_db()
    assert (run.state, run.stop_reason, run.reason) == ("stopped", why, "")
    answer = caller.get(f"/runs/{run.wire_id}").json()
    assert (answer["ok"], answer["error"]["details"]["stop_reason"]) == (False, why)
    assert not Invocation.objects.filter(finished_at=None).exists()
    assert Fact.objects.get(subject=run.wire_id, kind="agent_run.ended").content["data"]["stop_reason"] == why


@pytest.mark.req("RUN-2")
def test_it_stops_after_five_steps(caller: Caller, bench: ProviderBench, driver: RunDriver) -> None:
    bench.scripts = [propose(str(turn)) for turn in range(9)]
    run = run_of(submit(caller, limits=LIMITS))
    driver.drive()

    assert_stopped(run, "steps", caller)
    assert [role for _, role, _ in list_steps(run)] == ["model", "tool"] * 4 + ["model"]
    assert len(bench.requests) == 5


@pytest.mark.req("RUN-2")
def test_it_stops_before_it_costs_more_than_a_cent(
    caller: Caller, operator: Person, bench: ProviderBench, driver: RunDriver
) -> None:
    set_script_prices(operator.by, input="50", output="200")  # of a million tokens; an answer costs 1,500 millionths
    bench.scripts = [propose(str(turn)) for turn in range(9)]
    run = run_of(submit(caller, limits=LIMITS, arguments=say("Which?", tools=[ECHO], max_tokens=20)))
    driver.drive()

    assert_stopped(run, "money", caller)
    asked = run.steps.filter(role="model")
    assert [step.state for step in asked.order_by("position")][-2:] == ["succeeded", "skipped"]
    assert 0 < sum(step.cost_micros for step in asked) == 1_500 * (asked.count() - 1) <= CENT


@pytest.mark.req("RUN-2")
def test_it_stops_after_ten_seconds_and_not_before(
    caller: Caller, bench: ProviderBench, driver: RunDriver, passed: list[timedelta]
) -> None:
    bench.scripts = [propose("a"), text_answer("never")]
    run = run_of(submit(caller, limits=LIMITS))
    driver.ask_models()

    passed[0] = timedelta(seconds=9.999)
    driver.look()
    run.refresh_from_db()
    assert run.state == "running"
    passed[0] = timedelta(seconds=10)
    driver.look()

    assert_stopped(run, "seconds", caller)
    assert [call.state for call in list_calls(run)] == ["succeeded", "cancelled"]


@pytest.mark.req("RUN-2")
def test_it_stops_at_the_fourth_equal_call(caller: Caller, bench: ProviderBench, driver: RunDriver) -> None:
    bench.scripts = [propose("a", "b"), propose("a"), propose("a"), propose("a"), text_answer("never")]
    run = run_of(submit(caller, limits=LIMITS))
    driver.drive()

    assert_stopped(run, "equal_calls", caller)
    assert len(list_calls(run)) == 4 + 4
    assert [call.tool for call in list_calls(run)].count(ECHO) == 4


@pytest.mark.req("RUN-2")
def test_what_stays_within_all_limits_is_answered(
    caller: Caller, operator: Person, bench: ProviderBench, driver: RunDriver
) -> None:
    set_script_prices(operator.by, input="5", output="20")
    bench.scripts = [propose("a"), propose("a"), propose("a"), propose("b"), text_answer("Done")]
    run = run_of(submit(caller, limits=LIMITS, arguments=say("Which?", tools=[ECHO], max_tokens=20)))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    assert len(bench.requests) == 5
