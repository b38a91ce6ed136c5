"""Stacked chart: do columns stand where they belong, none higher than the plot, each part in proportion?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.components.stacked_chart import HEIGHT, TOP, ChartColumn, Series, StackedChart, lay_out_chart

SERIES = [Series(key, key, key, 0, "/all") for key in ("a", "b")]


def draw(*amounts: tuple[int, int]) -> StackedChart:
    columns = [
        ChartColumn(str(n), f"hour {n}", "x", "y", "/x", dict(zip("ab", pair, strict=True)), {"a": "/a", "b": "/b"})
        for n, pair in enumerate(amounts)
    ]
    return lay_out_chart(columns, SERIES, label="x", heading="Time")


def test_parts_stand_on_each_other_and_are_as_high_as_their_amounts() -> None:
    (placed,) = draw((30, 10)).columns

    first, second = placed.parts
    assert first.height == pytest.approx(3 * second.height, abs=0.05)
    assert second.y + second.height == pytest.approx(first.y, abs=0.05)
    assert placed.cells == [(30, "/a"), (10, "/b")]


def test_nothing_is_drawn_of_nothing() -> None:
    chart = draw((0, 0), (0, 0))

    assert chart.total == 0
    assert [column.parts for column in chart.columns] == [(), ()]


@pytest.mark.parametrize(("most", "line"), [(1, 1), (2, 2), (3, 4), (41, 60), (60, 60), (999, 1000), (1001, 2000)])
def test_the_highest_line_is_a_round_number_above_all(most: int, line: int) -> None:
    assert draw((most, 0)).lines[-1][1] == line


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=60))
def test_every_part_is_within_the_plot_and_every_column_within_its_step(amounts: list[tuple[int, int]]) -> None:
    chart = draw(*amounts)
    for placed in chart.columns:
        assert 0 <= placed.step_x <= placed.x <= placed.x + placed.width <= placed.step_x + placed.step + 0.01 <= 100.02
        assert sum(part.height for part in placed.parts) <= chart.room + 2 * len(placed.parts)
        assert all(0 <= part.y <= HEIGHT - TOP for part in placed.parts)
