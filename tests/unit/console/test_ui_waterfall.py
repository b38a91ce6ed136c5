"""UI waterfall: does the time axis keep order, stay inside the page and fold only real waits?"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kernel.components.waterfall import Step, build_scale, find_waits, lay_out_steps

CONSENT_WAIT = [
    Step("preflight", 0, 38),
    Step("consent", 38, 238_412, "person", waiting=True),
    Step("sandbox", 238_440, 241_790, "tool"),
]
steps = st.builds(
    lambda start, length, waiting: Step("step", start, start + length, waiting=waiting),
    st.floats(0, 1e7),
    st.floats(0, 1e6),
    st.booleans(),
)


def test_a_wait_for_a_person_is_folded_so_that_work_stays_readable() -> None:
    chart = lay_out_steps(CONSENT_WAIT)

    assert len(chart.bands) == 1
    assert chart.bars[2].width > 50
    assert chart.total_ms - chart.folded_ms < 4_000


def test_the_real_scale_folds_nothing() -> None:
    chart = lay_out_steps(CONSENT_WAIT, fold=False)

    assert chart.bands == ()
    assert chart.bars[2].width < 2


def test_a_short_call_has_no_fold() -> None:
    assert lay_out_steps([Step("a", 0, 5), Step("b", 700, 900)]).bands == ()


def test_a_call_that_is_still_waiting_is_folded_to_its_end() -> None:
    assert find_waits([Step("a", 0, 10), Step("consent", 10, 60_000, waiting=True)], 60_000) == [(10, 60_000)]


def test_a_call_that_took_no_time_can_be_drawn() -> None:
    chart = lay_out_steps([Step("denied", 0, 0)])

    assert chart.bars[0].width > 0
    assert chart.ticks == ()


def test_no_steps_is_an_empty_chart() -> None:
    assert lay_out_steps([]).bars == ()


def test_ticks_are_few_round_and_in_order() -> None:
    chart = lay_out_steps(CONSENT_WAIT)

    assert [tick.ms for tick in chart.ticks] == [239_000, 240_000, 241_000]
    assert [tick.x for tick in chart.ticks] == sorted(tick.x for tick in chart.ticks)


@given(st.lists(steps, max_size=12), st.booleans())
def test_bars_never_leave_the_page(drawn: list[Step], fold: bool) -> None:
    chart = lay_out_steps(drawn, fold=fold)

    for bar in chart.bars:
        assert -0.01 <= bar.x <= 100
        assert bar.x + bar.width <= 100.02


@given(st.lists(steps, min_size=1, max_size=12))
def test_later_moments_are_further_right(drawn: list[Step]) -> None:
    total = max(step.end_ms for step in drawn)
    place = build_scale(total, find_waits(drawn, total))
    moments = sorted({step.start_ms for step in drawn} | {step.end_ms for step in drawn})

    assert all(place(a) <= place(b) + 1e-6 for a, b in itertools.pairwise(moments))
