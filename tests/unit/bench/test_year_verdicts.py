"""Year verdicts: is a hub judged to have become slow that asks more of a processor in a year than in a month?"""

from __future__ import annotations

import pytest

from bench.year import FOUND, PROCESSOR, TIMES, judge_ages

MONTH = {"a proof": [2.0, 2.0, 9.0], "a proof" + PROCESSOR: [1.0, 1.0, 5.0]}


@pytest.mark.parametrize(
    ("waited", "worked", "verdict"),
    [
        (1.0, 1.0, "reached"),
        (1.0, TIMES, "reached"),
        (3.0, 1.0, "reached"),  # other programs had the machine
        (1.0, TIMES + 0.1, "NOT reached"),
        (1.0, 3.0, "NOT reached"),
    ],
)
def test_a_year_is_judged_by_what_a_processor_worked_for_it(waited: float, worked: float, verdict: str) -> None:
    year = {
        "a proof": [ms * waited for ms in MONTH["a proof"]],
        "a proof" + PROCESSOR: [ms * worked for ms in MONTH["a proof" + PROCESSOR]],
    }

    (judged,) = judge_ages(4000, MONTH, year)

    assert judged == ["a proof: ≤ 1.2 × that of a month", f"{worked:.2f} ×", verdict]


def test_one_figure_that_became_slow_is_not_hidden_by_others() -> None:
    month = MONTH | {"a search": [2.0], "a search" + PROCESSOR: [1.0]}

    judged = judge_ages(4000, month, month | {"a search" + PROCESSOR: [2.0]})

    assert [verdict for *_, verdict in judged] == ["reached", "NOT reached"]


def test_a_longer_list_is_said_beside_its_figure_and_excuses_nothing() -> None:
    month = MONTH | {"a proof" + FOUND: [1.0, 2.0]}

    (judged,) = judge_ages(4000, month, month | {"a proof" + FOUND: [30.0, 31.0], "a proof" + PROCESSOR: [2.0]})

    assert judged == ["a proof: ≤ 1.2 × that of a month, with 30.5 facts for 1.5", "2.00 ×", "NOT reached"]
