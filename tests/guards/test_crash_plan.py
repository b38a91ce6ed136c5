"""Crash plan: is a process killed at every point that has a name, and does the page say what is tested?"""

from __future__ import annotations

import re
from pathlib import Path

from kernel.fault_injection import AGENT_RUNS, BATCHES, MODEL_CALLS, POINTS, REPLAYING
from tests.crash.page import PAGE, text
from tests.crash.plan import BATCHES_PLANNED, LOSSES, MOMENTS
from tests.crash.run_plan import LOSSES_OF_RUNS, MOMENTS_OF_RUNS, STEPS, count_runs

ROOT = Path(__file__).resolve().parents[2]


def test_every_point_is_in_the_code_and_in_the_plan_of_crashes() -> None:
    sources = "".join(
        path.read_text() for folder in ("invocations", "kernel") for path in (ROOT / folder).rglob("*.py")
    )
    in_code = set(re.findall(r'\binject_fault(?:\(|, )"([a-z_.]+)"', sources))

    # Of a replay: tests/integration/invocations/replays/test_replay_periods.py; of a model: model_calls/test_model_crashes.py.
    assert in_code == set(POINTS) | set(REPLAYING) | set(MODEL_CALLS) | set(AGENT_RUNS) | set(BATCHES)
    assert {moment.point for moment in MOMENTS} == set(POINTS)
    assert {batch.point for batch in BATCHES_PLANNED} == set(BATCHES) - {"turns.waits", "commits.alone"}
    assert {moment.point for moment in MOMENTS_OF_RUNS} >= set(AGENT_RUNS) | set(MODEL_CALLS)


def test_some_200_runs_are_interrupted_and_at_each_of_their_steps() -> None:
    assert count_runs() >= 200
    assert {moment.after for moment in MOMENTS_OF_RUNS} == set(range(len(STEPS)))
    assert {loss.name for loss in LOSSES_OF_RUNS} >= {"redis", "messages", "postgresql", "database"}


def test_no_call_without_a_key_has_a_second_attempt_in_the_plan() -> None:
    fates = [*(each.fates for each in MOMENTS), *(each.fates for each in LOSSES)]

    assert fates
    assert [
        each for each in fates for kind, fate in each.items() if fate.attempts > 1 and kind != "honours_its_key"
    ] == []


def test_the_page_says_what_the_plan_says() -> None:
    assert PAGE.read_text() == text()
