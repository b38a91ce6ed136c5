"""Budget lines: does a line say when there is room, and does a refusal name the budget and the time to come again?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.budgets.lines import BudgetLine, Demand, check_budgets, filter_by_grants, snapshot_lines, window_number
from access.models import Dimension
from access.problems import QuotaExceeded, RateLimited, TooManyAtOnce
from kernel.ids import encode

ID, OTHER = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
DAY = 24 * 60 * 60


def line(**changes: Any) -> BudgetLine:
    values: dict[str, Any] = {
        "budget_id": ID,
        "scope": "tenant",
        "label": "",
        "dimension": "calls",
        "amount": 10,
        "window_s": DAY,
    } | changes
    values.setdefault("number", window_number(values["window_s"], NOON))
    return BudgetLine(**values)


def refused(*lines: BudgetLine, demand: Demand | None = None, now: datetime = NOON) -> QuotaExceeded:
    with pytest.raises(QuotaExceeded) as caught:
        check_budgets(lines, demand or Demand(), now)
    return caught.value


@pytest.mark.req("TOOLS-29")
@pytest.mark.parametrize(("used", "reserved"), [(10, 0), (0, 10), (7, 3), (12, 0)])
def test_what_is_used_and_what_is_held_both_count(used: int, reserved: int) -> None:
    problem = refused(line(used=used, reserved=reserved))

    assert problem.details["budget"]["budget"] == encode("bud", ID)
    assert problem.details["budget"]["remaining"] == 0


def test_the_last_of_a_budget_may_be_taken() -> None:
    check_budgets([line(used=9), line(used=6, reserved=3)], Demand(), NOON)


@pytest.mark.req("TOOLS-29")
def test_a_used_up_budget_says_that_it_is_full_again_when_its_window_ends() -> None:
    problem = refused(line(used=10))

    assert type(problem) is QuotaExceeded
    assert problem.retry_after == 12 * 60 * 60
    assert problem.details["budget"]["resets_at"] == "2026-05-02T00:00:00+00:00"
    assert "2026-05-02T00:00:00+00:00" in problem.remedy
    assert "the tenant's budget" in problem.detail.lower()


def test_what_running_calls_hold_may_be_free_again_at_any_moment() -> None:
    assert refused(line(used=5, reserved=5)).retry_after == 1


def test_a_call_that_no_window_has_room_for_is_not_told_to_wait() -> None:
    problem = refused(line(dimension="cpu_ms", amount=500), demand=Demand(cpu_ms=501))

    assert problem.retry_after is None
    assert "waiting does not help" in problem.remedy


def test_the_last_second_of_a_window_is_waited_for_and_never_less_than_one() -> None:
    late = NOON + timedelta(hours=11, minutes=59, seconds=59, milliseconds=999)

    assert refused(line(used=10), now=late).retry_after == 1


def test_a_clock_that_went_back_makes_nobody_wait_longer_than_a_window() -> None:
    ahead = line(used=10, number=window_number(DAY, NOON) + 3)

    assert refused(ahead).retry_after == DAY


def test_as_many_calls_as_may_run_at_once_is_a_refusal_of_its_own() -> None:
    full = line(dimension="concurrency", amount=2, window_s=0, reserved=2, scope="manifest", label="a.b.c")

    problem = refused(full)

    assert isinstance(problem, TooManyAtOnce)
    assert problem.retry_after == 1
    assert "the manifest of a.b.c allows 2" in problem.detail


def test_of_several_lines_without_room_the_one_that_takes_longest_is_named() -> None:
    minute = line(used=10, window_s=60)
    day = line(used=10, budget_id=OTHER)
    running = line(dimension="concurrency", amount=1, window_s=0, reserved=1)

    assert refused(minute, day, running).details["budget"]["budget"] == encode("bud", OTHER)


def test_a_call_that_takes_nothing_of_a_dimension_is_let_through_however_much_is_used() -> None:
    check_budgets([line(dimension="money", amount=10, used=99)], Demand(money=0), NOON)

    assert refused(line(dimension="money", amount=10, used=10), demand=Demand(money=1))


def test_a_rate_is_not_in_any_window() -> None:
    rate = line(dimension="rate", amount=1, used=0)

    check_budgets([rate], Demand(), NOON)

    assert "used" not in rate.to_json(Demand())


def test_a_call_counts_against_the_budget_of_its_own_grant_only() -> None:
    mine, others, tenants = line(scope="grant", grant_id=ID), line(scope="grant", grant_id=OTHER), line()

    assert filter_by_grants([mine, others, tenants], {ID}) == [mine, tenants]
    assert filter_by_grants([mine, others, tenants], ()) == [tenants]


def test_the_snapshot_says_what_was_left_and_what_the_call_may_take() -> None:
    [said] = snapshot_lines([line(dimension="bytes_out", amount=100, used=30, reserved=20)], Demand(bytes_out=40))

    assert (said["limit"], said["used"], said["reserved"], said["remaining"], said["takes"]) == (100, 30, 20, 50, 40)


@pytest.mark.parametrize("cls", [QuotaExceeded, TooManyAtOnce, RateLimited])
def test_every_refusal_is_answered_429_and_may_be_tried_again(cls: type[QuotaExceeded]) -> None:
    assert (cls.status, cls.code, cls.retryable) == (429, "RATE_LIMITED", "yes")


@given(
    amount=st.integers(0, 100),
    used=st.integers(0, 150),
    reserved=st.integers(0, 150),
    takes=st.integers(0, 100),
    dimension=st.sampled_from([each for each in Dimension.values if each not in ("concurrency", "rate")]),
)
def test_a_line_has_room_exactly_when_the_sum_stays_within_the_amount(
    amount: int, used: int, reserved: int, takes: int, dimension: str
) -> None:
    found = line(dimension=dimension, amount=amount, used=used, reserved=reserved)
    demand = Demand(**{"calls": 0, dimension: takes})

    assert found.has_room_for(demand) == (takes == 0 or used + reserved + takes <= amount)


@given(window_s=st.integers(1, 400 * DAY), at=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)))  # noqa: DTZ001
def test_every_moment_is_in_the_window_that_resets_next(window_s: int, at: datetime) -> None:
    now = at.replace(tzinfo=UTC)
    found = line(window_s=window_s, number=window_number(window_s, now))

    assert found.resets_at is not None
    assert timedelta(0) < found.resets_at - now <= timedelta(seconds=window_s)
