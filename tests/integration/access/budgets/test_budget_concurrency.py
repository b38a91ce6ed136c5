"""Budget concurrency: does a budget hold, however many calls come at once?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import Sum

from access.budgets.services import set_budget
from access.models import Budget, BudgetWindow, Reservation
from evidence.models import Fact
from invocations.models import Invocation, State
from tests.support.calls import PAIR, ask, kinds_of, row_of
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

ECHO = "sample.tools.echo"
YEAR = 31_536_000


def balance() -> tuple[int, int]:
    """What all windows of calls together say: used and reserved."""
    sums = BudgetWindow.objects.filter(budget__dimension="calls").aggregate(used=Sum("used"), reserved=Sum("reserved"))
    return sums["used"] or 0, sums["reserved"] or 0


@pytest.mark.req("TOOLS-29")
@pytest.mark.django_db(transaction=True)
def test_of_200_calls_at_once_against_a_budget_for_50_exactly_50_go_through(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable(output_schema={"type": "object"})
    grant()
    set_budget(scope="tenant", dimension="calls", amount=50, window_s=YEAR, by=operator.by)
    callers, allowed = 200, 50

    answers = at_once(
        callers,
        lambda number: caller.invoke(ECHO, {"text": str(number)}, headers={"Prefer": "respond-async"}),
        connections=40,
    )

    refused = callers - allowed
    statuses = sorted(getattr(answer, "status_code", 0) for answer in answers)
    assert statuses == [202] * allowed + [429] * refused
    assert balance() == (0, allowed)
    assert Reservation.objects.filter(settled=None).count() == allowed
    assert Invocation.objects.filter(state=State.QUEUED).count() == len(bell.rung) == allowed
    assert Invocation.objects.filter(state=State.DENIED, reason="QUOTA.BUDGET_EXCEEDED").count() == refused
    assert Fact.objects.filter(kind="invocation.began").count() == callers
    assert Fact.objects.filter(kind="invocation.ended").count() == refused

    bell.deliver()

    assert Invocation.objects.filter(state=State.SUCCEEDED).count() == len(sandbox.calls) == allowed
    assert balance() == (allowed, 0)
    assert not Reservation.objects.filter(settled=None).exists()
    assert caller.invoke(ECHO, {}).status_code == 429


@pytest.mark.req("TOOLS-29", "TOOLS-14")
@pytest.mark.django_db
def test_a_call_beyond_the_limit_says_which_budget_and_when_to_come_again(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant(calls_limit=1, window_s=YEAR)

    first, second = caller.invoke(ECHO, {}), caller.invoke(ECHO, {})

    assert first.status_code == 200
    assert [each["remaining"] for each in first.json()["call"]["budget"]] == [1]
    assert second.status_code == 429
    error = second.json()["error"]
    assert (error["code"], error["reason"]) == ("RATE_LIMITED", "QUOTA.BUDGET_EXCEEDED")
    assert 0 < int(second.headers["Retry-After"]) == error["retry_after_s"] <= YEAR
    budget = Budget.objects.get()
    assert error["details"]["budget"]["budget"] == budget.wire_id
    assert error["details"]["budget"]["remaining"] == 0
    assert budget.wire_id in error["remedy"]
    assert second.json()["call"]["refused_at"] == "quota"
    assert kinds_of(row_of(second)) == PAIR


@pytest.mark.django_db
def test_a_refused_call_costs_nothing(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant(calls_limit=2)

    caller.invoke(ECHO, {"text": 5})  # not by the schema

    assert not BudgetWindow.objects.exists()


@pytest.mark.django_db
def test_a_preflight_costs_nothing(caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable()
    grant(calls_limit=2)

    answers = [ask(caller, ECHO) for _ in range(3)]

    assert [answer["budget_snapshot"][0]["remaining"] for answer in answers] == [2, 2, 2]
    assert not BudgetWindow.objects.exists()


@pytest.mark.django_db
def test_a_second_grant_serves_when_the_first_is_used_up(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    narrow = grant(ECHO, calls_limit=1, window_s=YEAR)
    wide = grant("*", calls_limit=1, window_s=YEAR)

    used = [row_of(caller.invoke(ECHO, {})).grant_id for _ in range(2)]
    third = caller.invoke(ECHO, {})

    assert used == [narrow.pk, wide.pk]  # the most specific first
    assert third.status_code == 429
