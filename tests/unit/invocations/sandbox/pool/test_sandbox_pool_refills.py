"""Sandbox pool refills: when are boxes made ahead of calls?"""

from __future__ import annotations

from invocations.sandbox.pool.slots import PoolSlotState
from tests.support.pool_harness import LARGE, USUAL, Hub


def test_a_blank_box_is_made_ahead_and_again_when_it_was_taken_but_after_the_call() -> None:
    hub = Hub(ready=1)
    hub.pool.sizing.keep_ready(USUAL)
    hub.pool.tick()
    assert hub.work() == ["make 1"]

    ticket = hub.ask(None)
    assert ticket.slot is not None
    assert hub.work() == []

    hub.pool.give_back(ticket.slot)
    assert hub.work() == ["end 1", "make 2"]
    assert hub.pool.made == {"refill": 2}


def test_a_refill_waits_for_long_calls_only_for_a_while() -> None:
    hub = Hub(ready=1)
    slot = hub.slot("a")
    assert hub.work() == []

    hub.later(1.1)

    assert hub.work() == ["make 2"]
    assert slot.state is PoolSlotState.BUSY


def test_a_refill_waits_longer_when_processors_are_short() -> None:
    hub = Hub(ready=1, pressure=90.0)
    hub.slot("a")

    hub.later(1.1)
    assert hub.work() == []
    hub.later(5)
    assert hub.work() == ["make 2"]


def test_no_refill_while_a_call_waits_for_its_box() -> None:
    hub = Hub(ready=3)
    hub.pool.sizing.keep_ready(USUAL)
    hub.ask("a", shape=LARGE)
    hub.pool.tick()

    job = hub.pool.next_job()

    assert job is not None
    assert job.slot.shape == LARGE
    assert hub.pool.next_job() is None


def test_two_refills_at_a_time() -> None:
    hub = Hub(ready=5)
    hub.pool.sizing.keep_ready(USUAL)
    hub.pool.tick()

    jobs = [hub.pool.next_job() for _ in range(3)]

    assert [job is not None for job in jobs] == [True, True, False]


def test_a_refill_ends_nothing_for_its_room() -> None:
    hub = Hub(boxes=1, ready=1)
    hub.pool.give_back(hub.slot("a"))

    hub.later(2)

    assert hub.work() == []
    assert hub.states() == [PoolSlotState.LOADED]


def test_boxes_that_are_taken_often_are_kept_ready_in_numbers() -> None:
    hub = Hub(ready=1, boxes=8)
    for _ in range(40):
        hub.pool.give_back(hub.slot(None))
        hub.now += 0.1

    hub.work()

    ready = hub.states().count(PoolSlotState.READY)
    assert ready == 2  # one for the burst, and 4 a second times a quarter of a second
    hub.later(400)
    hub.work()
    assert hub.states() == []
