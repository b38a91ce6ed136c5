"""Two workers: what do two worker processes make of one queue, and one call of worker after worker that is killed?"""

from __future__ import annotations

import pytest

from tests.crash.plan import KEYED, Fate
from tests.crash.world import World, some_key
from tests.e2e.processes import until

SERIAL = "one_at_a_time"
CALLS = 8


@pytest.mark.long
@pytest.mark.req("TOOLS-18", "SVC-4")
def test_calls_of_a_serial_tool_never_overlap_though_two_workers_take_them(world: World) -> None:
    world.worker()
    with world.another_worker() as second:
        calls = [world.begin(SERIAL, seconds=0.5) for _ in range(CALLS)]
        until(lambda: all(world.agent.state(call) == "succeeded" for call in calls), "all have had their turn")
        assert second.runs, second.said()

    assert [world.store.runs[call] for call in calls] == [1] * CALLS
    assert world.store.most_of_tool[SERIAL] == 1
    world.check_rest()


@pytest.mark.long
@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_a_keyed_call_whose_every_worker_is_killed_is_given_up_after_the_third(world: World) -> None:
    key = some_key()
    for attempt in range(3):
        worker = world.worker(**{"run.after": "kill"})
        if not attempt:
            assert world.call(KEYED, key, prefer="respond-async").status == 202
        world.check_killed(worker)
        world.check_no_box_is_left()
    world.worker()

    answer = world.stable_answer(KEYED, key)

    world.check_fate(answer, Fate("outcome_unknown", runs=3, attempts=3), KEYED)
