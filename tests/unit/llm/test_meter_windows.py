"""Meter windows: a provider that reports two per cent too much or too little is found, and an honest one raises no alarm."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.meter_windows import MIN_CALLS, MeterWindow, find_meter_difference

CALLS = 1000
FIGURES = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), max_size=20)


def measure(seed: int, *, lie: str = "1", exact: bool = False) -> MeterWindow:
    """A thousand calls of a model that an estimate takes for a quarter more tokens than they are, give or take a tenth."""
    chosen, window = random.Random(seed), MeterWindow()
    for _ in range(CALLS):
        tokens = chosen.randrange(200, 4000)
        counted = tokens if exact else round(tokens * 1.25 * chosen.uniform(0.9, 1.1))
        window = window.add(round(tokens * Decimal(lie)), counted)
    return window


def is_alarming(window: MeterWindow, learned: MeterWindow | None = None) -> bool:
    difference = find_meter_difference(window, learned)
    assert difference is not None
    return difference.is_alarming


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("lie", ["1.02", "0.98", "1.006", "0.994"])
def test_held_against_an_exact_count_more_than_half_a_per_cent_raises_the_alarm(lie: str) -> None:
    assert is_alarming(measure(1, lie=lie, exact=True))


@pytest.mark.parametrize("truth", ["1", "1.004", "0.996"])
def test_held_against_an_exact_count_less_than_half_a_per_cent_raises_none(truth: str) -> None:
    assert not is_alarming(measure(1, lie=truth, exact=True))


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("lie", ["1.02", "0.98"])
def test_held_against_an_estimate_two_per_cent_raise_the_alarm(lie: str) -> None:
    assert is_alarming(measure(2, lie=lie), measure(1))


@pytest.mark.parametrize("seed", range(10, 30))
def test_an_estimate_that_is_wrong_by_its_usual_factor_raises_none(seed: int) -> None:
    assert not is_alarming(measure(seed), measure(1))


def test_a_provider_that_reports_nothing_any_more_raises_the_alarm() -> None:
    assert is_alarming(measure(2, lie="0"), measure(1))


def test_few_calls_or_nothing_counted_are_not_compared() -> None:
    few = MeterWindow()
    for _ in range(MIN_CALLS - 1):
        few = few.add(1000, 900)
    assert find_meter_difference(few, measure(1)) is None
    assert find_meter_difference(measure(1), few) is None
    assert find_meter_difference(few.add(1000, 900), measure(1)) is not None
    assert find_meter_difference(MeterWindow()) is None
    assert find_meter_difference(MeterWindow().add(5, 0)) is None


def test_a_figure_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        MeterWindow().add(-1, 5)


@given(FIGURES, FIGURES)
def test_windows_add_up_to_the_window_of_all_their_calls(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    def collect(figures: list[tuple[int, int]]) -> MeterWindow:
        window = MeterWindow()
        for reported, counted in figures:
            window = window.add(reported, counted)
        return window

    assert collect(first) + collect(second) == collect(first + second)


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=20), st.integers(1, 9))
def test_calls_of_one_ratio_leave_nothing_to_chance(counts: list[int], factor: int) -> None:
    window = MeterWindow()
    for counted in counts:
        window = window.add(counted * factor, counted)
    assert (window.ratio, window.squared_error) == (factor, 0)
