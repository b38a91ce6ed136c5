"""Budget calls: do calls count against budgets from their Begin to their End, however they end?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from kombu.exceptions import OperationalError

from access.budgets.services import set_budget
from access.models import Budget, BudgetWindow, Reservation
from evidence.models import Fact
from invocations.models import Invocation
from invocations.queue import outbox, sweeper
from invocations.run_profiles.services import load_profile
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.budgets import balance, take
from tests.support.calls import ask, assert_problem, row_of
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.budgets.lines import BudgetLine
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
YEAR = 365 * 24 * 60 * 60
ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> Tool:
    grant()
    return enable(output_schema={"type": "object"})


def tenants(operator: Person, dimension: str, amount: int) -> Budget:
    window_s = 0 if dimension == "concurrency" else YEAR
    return set_budget(scope="tenant", dimension=dimension, amount=amount, window_s=window_s, by=operator.by)


@pytest.mark.req("TOOLS-29")
def test_a_call_counts_the_bytes_and_the_cpu_time_that_it_took(
    caller: Caller, operator: Person, ready: Tool, sandbox: ScriptedSandbox
) -> None:
    budgets = {dimension: tenants(operator, dimension, 10**9) for dimension in ("bytes_in", "bytes_out", "cpu_ms")}
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": "x"}, report={}, result_bytes=321, cpu_ms=12.2)

    answer = caller.invoke(ECHO, {"text": "ab"})

    assert answer.status_code == 200
    assert {dimension: balance(budget) for dimension, budget in budgets.items()} == {
        "bytes_in": (len('{"text":"ab"}'), 0), "bytes_out": (321, 0), "cpu_ms": (13, 0)
    }  # fmt: skip
    said = {each["dimension"]: each for each in answer.json()["call"]["budget"]}
    limits = load_profile(row_of(answer)).limits
    assert said["bytes_out"]["takes"] == limits.result_bytes
    assert said["cpu_ms"]["takes"] == limits.cpu_s * 1000


@pytest.mark.req("TOOLS-29", "TOOLS-31")
def test_money_is_what_the_policy_says_a_call_costs_and_a_new_price_counts_with_the_next(
    caller: Caller, operator: Person, ready: Tool
) -> None:
    money = tenants(operator, "money", 10_000)

    for amount in (2_500, 4_000):
        put_in_force(permit(), {"id": "price", "effect": "price", "when": {}, "amount_micros": amount})
        assert caller.invoke(ECHO, {}).status_code == 200
    refused = caller.invoke(ECHO, {})

    assert balance(money) == (6_500, 0)
    body = assert_problem(refused, 429, "QUOTA.BUDGET_EXCEEDED")
    assert body["error"]["details"]["budget"]["dimension"] == "money"
    assert body["error"]["details"]["budget"]["takes"] == 4_000


@pytest.mark.req("TOOLS-29")
@pytest.mark.parametrize("scope", ["tenant", "agent", "tool", "grant"])
def test_a_budget_of_each_scope_refuses_what_exceeds_it(
    scope: str, caller: Caller, operator: Person, ready: Tool
) -> None:
    of: dict[str, dict[str, Any]] = {
        "tenant": {},
        "agent": {"agent_id": caller.agent.pk},
        "tool": {"tool": ECHO},
        "grant": {"grant_id": caller.agent.grants.get().pk},
    }
    set_budget(scope=scope, dimension="calls", amount=1, window_s=YEAR, by=operator.by, **of[scope])

    first, second = caller.invoke(ECHO, {}), caller.invoke(ECHO, {})

    assert first.status_code == 200
    body = assert_problem(second, 429, "QUOTA.BUDGET_EXCEEDED")
    assert body["error"]["details"]["budget"]["scope"] == scope


def test_what_is_held_for_a_waiting_call_is_not_there_for_another(
    caller: Caller, operator: Person, ready: Tool, bell: Bell
) -> None:
    calls = tenants(operator, "calls", 1)
    assert caller.invoke(ECHO, {}, headers=ASYNC).status_code == 202
    assert balance(calls) == (0, 1)

    refused = caller.invoke(ECHO, {}, headers=ASYNC)

    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"
    bell.deliver()
    assert balance(calls) == (1, 0)


@pytest.mark.parametrize(
    "outcome",
    [
        RunOutcome(RunStatus.RAISED, error_type="ValueError", result_bytes=0, cpu_ms=5),
        RunOutcome(RunStatus.TIMED_OUT, cpu_ms=5),
        RunOutcome(RunStatus.LOST),
    ],
)
def test_a_call_that_ran_counts_whatever_became_of_it(
    outcome: RunOutcome, caller: Caller, operator: Person, ready: Tool, sandbox: ScriptedSandbox
) -> None:
    calls, cpu = tenants(operator, "calls", 10), tenants(operator, "cpu_ms", 10**9)
    sandbox.outcome = outcome

    row = row_of(caller.invoke(ECHO, {}))

    assert balance(calls) == (1, 0)
    # What nobody has measured counts as it was reserved.
    assert balance(cpu) == (5 if outcome.cpu_ms else load_profile(row).limits.cpu_s * 1000, 0)


def test_a_call_that_could_not_be_started_costs_nothing(
    caller: Caller, operator: Person, ready: Tool, sandbox: ScriptedSandbox
) -> None:
    calls = tenants(operator, "calls", 10)
    sandbox.outcome = RunOutcome(RunStatus.START_FAILED)

    assert caller.invoke(ECHO, {}).status_code == 503

    assert balance(calls) == (0, 0)


def test_a_call_whose_message_could_not_be_sent_costs_nothing(
    caller: Caller, operator: Person, ready: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tenants(operator, "calls", 10)

    def down(invocation_id: Any, work_class: str) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(outbox, "send_wake_up", down)

    assert caller.invoke(ECHO, {}).status_code == 503

    assert balance(calls) == (0, 0)


def test_a_call_that_nobody_picked_up_costs_nothing(caller: Caller, operator: Person, ready: Tool, bell: Bell) -> None:
    calls = tenants(operator, "calls", 10)
    row = row_of(caller.invoke(ECHO, {}, headers=ASYNC))
    Invocation.objects.filter(pk=row.pk).update(queue_deadline_at=datetime.now(UTC) - timedelta(seconds=1))

    assert sweeper.sweep_once()["closed"] == 1

    assert balance(calls) == (0, 0)


def test_a_call_whose_worker_was_lost_counts_in_full(
    caller: Caller, operator: Person, ready: Tool, sandbox: ScriptedSandbox
) -> None:
    calls, cpu = tenants(operator, "calls", 10), tenants(operator, "cpu_ms", 10**9)

    def lose_the_worker() -> None:
        Invocation.objects.update(lease_until=datetime.now(UTC) - timedelta(seconds=1))
        sweeper.sweep_once()

    sandbox.during = lose_the_worker

    row = row_of(caller.invoke(ECHO, {}))

    assert row.state == "outcome_unknown"
    assert balance(calls) == (1, 0)
    assert balance(cpu) == (load_profile(row).limits.cpu_s * 1000, 0)


def test_what_nobody_settled_is_found_and_counts_as_it_was_reserved(
    caller: Caller, operator: Person, ready: Tool, lines: Callable[..., list[BudgetLine]], bell: Bell
) -> None:
    calls = tenants(operator, "calls", 10)
    waiting = row_of(caller.invoke(ECHO, {}, headers=ASYNC))
    now = datetime.now(UTC)
    take(lines(now), now=now)  # of a call that is not there
    assert sweeper.settle_lost_budgets() == 0  # all of it is young
    Reservation.objects.update(created_at=now - timedelta(minutes=6))

    assert sweeper.sweep_once()["settled"] == 1

    assert balance(calls) == (1, 1)
    assert Reservation.objects.get(settled=None).invocation_id == waiting.pk  # its call goes on


# How many of a tool's calls may run at the same time, by its manifest.


@pytest.mark.req("TOOLS-29")
@pytest.mark.parametrize(("manifest", "allowed"), [({"limits": {"concurrency": n}}, n) for n in (1, 2)])
def test_no_more_calls_run_or_wait_than_the_manifest_allows(
    manifest: dict[str, Any], allowed: int, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any],
    bell: Bell, sandbox: ScriptedSandbox,
) -> None:  # fmt: skip
    grant()
    enable(output_schema={"type": "object"}, **manifest)
    for _ in range(allowed):
        assert caller.invoke(ECHO, {}, headers=ASYNC).status_code == 202

    refused = caller.invoke(ECHO, {}, headers=ASYNC)

    body = assert_problem(refused, 429, "QUOTA.CONCURRENCY")
    assert body["error"]["details"]["budget"]["scope"] == "manifest"
    assert ask(caller, ECHO)["refused_at"] == "quota"
    bell.deliver()
    assert caller.invoke(ECHO, {}).status_code == 200
    budget = Budget.objects.get(scope="manifest")
    assert balance(budget) == (0, 0)
    fact = Fact.objects.get(kind="budget.set", subject=budget.wire_id)
    assert (fact.actor_kind, fact.actor_id) == ("system", "system:manifest")


def test_the_limit_follows_the_version_that_calls_get(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    grant()
    result = {"type": "object"}
    enable(output_schema=result, limits={"concurrency": 1})
    caller.invoke(ECHO, {})
    budget = Budget.objects.get(scope="manifest")

    enable(version="1.1.0", output_schema=result, limits={"concurrency": 3})
    caller.invoke(ECHO, {})
    budget.refresh_from_db()
    assert (budget.amount, budget.ended_at) == (3, None)

    enable(version="1.2.0", output_schema=result)
    caller.invoke(ECHO, {})
    budget.refresh_from_db()
    assert budget.ended_at is not None
    assert Fact.objects.filter(kind="budget.ended", subject=budget.wire_id).count() == 1


def test_a_call_that_is_refused_leaves_no_window(caller: Caller, operator: Person, ready: Tool) -> None:
    tenants(operator, "calls", 10)

    assert caller.invoke(ECHO, {"text": 5}).status_code == 422

    assert not BudgetWindow.objects.exists()
