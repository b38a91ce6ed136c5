"""Budget forecast: is the forecast a straight line that trusts a young window less than the ones before it?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from access.budgets.forecast import Forecast, compute_forecast
from access.budgets.lines import BudgetLine, window_number

DAY = 24 * 60 * 60
MIDNIGHT = datetime(2026, 5, 1, tzinfo=UTC)
NOON = MIDNIGHT + timedelta(hours=12)


def line(**changes: Any) -> BudgetLine:
    values: dict[str, Any] = {"amount": 100, "window_s": DAY, "dimension": "calls", "scope": "tenant", "label": ""}
    values |= changes
    return BudgetLine(budget_id=UUID(int=1), number=window_number(values["window_s"], NOON), **values)


def test_half_of_the_window_uses_half_of_what_the_whole_will() -> None:
    assert compute_forecast(line(used=30), [], NOON) == Forecast(by_end=60, full_at=None)


def test_what_running_calls_hold_counts_as_used() -> None:
    assert compute_forecast(line(used=20, reserved=10), [], NOON) == Forecast(by_end=60, full_at=None)


def test_it_says_when_nothing_is_left_if_it_goes_on_like_this() -> None:
    assert compute_forecast(line(used=80), [], NOON) == Forecast(by_end=160, full_at=NOON + timedelta(hours=3))


def test_a_used_up_budget_is_used_up_now() -> None:
    assert compute_forecast(line(used=100), [], NOON) == Forecast(by_end=200, full_at=NOON)


def test_a_window_that_has_just_begun_is_like_those_before_it() -> None:
    soon = MIDNIGHT + timedelta(minutes=1)

    assert compute_forecast(line(used=0), [60, 40], soon) == Forecast(by_end=50, full_at=None)
    assert compute_forecast(line(used=0), [], soon) is None


def test_what_has_no_window_has_no_forecast() -> None:
    assert compute_forecast(line(window_s=0, dimension="concurrency"), [], NOON) is None
    assert compute_forecast(line(dimension="rate", window_s=60), [], NOON) is None


def test_a_clock_outside_of_the_window_breaks_nothing() -> None:
    for now in (MIDNIGHT - timedelta(days=3), MIDNIGHT + timedelta(days=3)):
        found = compute_forecast(line(used=30), [10], now)

        assert found is not None
        assert found.by_end >= 30


@given(
    used=st.integers(0, 10_000),
    amount=st.integers(0, 10_000),
    past=st.lists(st.integers(0, 10_000), max_size=4),
    second=st.integers(0, DAY - 1),
)
def test_it_never_falls_below_what_is_used_and_is_full_exactly_when_it_exceeds_the_amount(
    used: int, amount: int, past: list[int], second: int
) -> None:
    now = MIDNIGHT + timedelta(seconds=second)

    found = compute_forecast(line(used=used, amount=amount), past, now)

    if found is not None:
        assert found.by_end >= used
        if found.full_at is None:
            assert found.by_end <= amount
        else:
            assert now <= found.full_at <= MIDNIGHT + timedelta(days=1, seconds=1)
            assert found.by_end >= amount or used >= amount
