"""Stored steps: are they read as they were written, in few bytes, also those that were stored before?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from invocations.decide.preflight import PREFIX, STEPS
from invocations.step_log import FAILED, PASSED, SKIPPED, StepLog
from invocations.stored_steps import KNOWN, pack_steps, read_stored_steps, unpack_steps

MICROSECONDS = st.integers(0, 10**12)


def step(name: str, kind: str, begin_us: int, took_us: int, status: str = PASSED, note: str = "") -> dict[str, Any]:
    begin, end = begin_us / 1000, (begin_us + took_us) / 1000
    return {"name": name, "kind": kind, "begin_ms": begin, "end_ms": end, "status": status, "note": note}


STORED = st.builds(
    step,
    st.sampled_from([name for name, _ in KNOWN]) | st.text(),
    st.sampled_from(["control", "person", "tool"]),
    MICROSECONDS,
    MICROSECONDS,
    st.sampled_from([PASSED, FAILED, SKIPPED]),
    st.text(),
)


@given(st.lists(STORED))
def test_steps_are_read_as_they_were_written(steps: list[dict[str, Any]]) -> None:
    assert unpack_steps(pack_steps(steps)) == steps


def test_what_a_step_log_collects_is_read_to_the_microsecond() -> None:
    log = StepLog(datetime.now(UTC))
    with log.step("worker.recheck"):
        pass
    log.add("queue.wait", "control", 0.1234567, 17.0004999, note="waited")

    assert read_stored_steps(pack_steps(log.steps)) == log.steps


def test_numbers_that_rows_refer_to_mean_what_they_meant() -> None:
    """A row of today, for ever. When this fails, a name was moved or taken away: put it back, and add new ones at the end."""
    stored = '[[0,51,33],[8,40,1200,"","failed"],[14,-12,900,"ok"],[20,1,2],[["a.new.one","person"],0,0]]'

    assert unpack_steps(stored) == [
        step("preflight.tool", "control", 51, 33),
        step("queue.wait", "control", 91, 1200, FAILED),
        step("sandbox.run", "tool", 79, 900, note="ok"),
        step("model.ask", "tool", 80, 2),
        step("a.new.one", "person", 80, 0),
    ]


def test_each_step_of_the_preflight_has_a_number() -> None:
    assert {(PREFIX + name, "control") for name in STEPS} <= set(KNOWN)
    assert len(set(KNOWN)) == len(KNOWN)


def test_they_take_a_quarter_of_what_they_say() -> None:
    steps = [step(name, kind, n * 1_000, 950) for n, (name, kind) in enumerate(KNOWN)]

    assert len(pack_steps(steps)) * 4 < len(json.dumps(steps))


def test_steps_of_before_are_read_as_they_are() -> None:
    before = [step("queue.wait", "control", 0, 5)]

    assert read_stored_steps(before) is before
