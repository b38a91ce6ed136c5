"""Sandbox pool failures: what becomes of calls when boxes cannot be made?"""

from __future__ import annotations

from invocations.sandbox.pool.circuit_breaker import CircuitState
from invocations.sandbox.pool.slots import BoxRefused
from tests.support.pool_harness import LARGE, USUAL, Hub


def test_a_box_that_cannot_be_made_fails_one_call_with_the_reason() -> None:
    hub = Hub()
    first, second = hub.ask("a"), hub.ask("a")
    error = RuntimeError("no such image")

    job = hub.pool.next_job()
    assert job is not None
    hub.pool.not_made(job.slot, error, broken=False)
    hub.work()

    assert first.refusal is error
    assert second.slot is not None
    assert hub.pool.breakers.engine.state(hub.now) is CircuitState.CLOSED


def test_when_the_engine_is_broken_calls_fail_at_once_until_one_try_succeeds() -> None:
    hub = Hub()
    for _ in range(3):
        hub.ask("a")
        hub.work(fails=RuntimeError("no engine"))

    refused = hub.ask("a")
    assert isinstance(refused.refusal, BoxRefused)
    assert refused.refusal.retry_after_s == 5
    assert "no engine" in str(refused.refusal)
    assert hub.work() == []

    hub.later(5)
    first, second = hub.ask("a"), hub.ask("b")
    assert hub.pool.next_job() is not None
    assert hub.pool.next_job() is None  # one try only
    assert not second.settled
    for slot in hub.pool.slots():
        if slot.number == 4:
            hub.pool.made_one(slot, "box", 0.2)
    hub.work()
    assert first.slot and second.slot


def test_an_image_that_does_not_start_is_nobody_elses_trouble() -> None:
    hub = Hub()
    for _ in range(3):
        hub.ask("a", shape=LARGE)
        hub.work(fails=RuntimeError("no supervisor"), broken=False, died=True)

    refused = hub.ask("a", shape=LARGE)
    assert isinstance(refused.refusal, BoxRefused)
    assert "Boxes of this image" in str(refused.refusal)
    assert hub.slot("b", shape=USUAL)

    hub.later(5)
    again = hub.ask("a", shape=LARGE)
    hub.work(fails=RuntimeError("no such image"), broken=False)  # it was not tried: nobody knows yet
    assert str(again.refusal) == "no such image"
    assert hub.slot("a", shape=LARGE)


def test_loaded_boxes_serve_while_the_engine_is_broken() -> None:
    hub = Hub()
    slot = hub.slot("a")
    hub.pool.give_back(slot)
    for _ in range(3):
        hub.ask("b")
        hub.work(fails=RuntimeError("no engine"))

    assert hub.ask("b").refusal is not None
    assert hub.ask("a").slot is slot


def test_everybody_who_waits_for_a_box_is_told_when_the_engine_breaks() -> None:
    hub = Hub()
    tickets = [hub.ask(f"k{number}") for number in range(5)]

    hub.work(fails=RuntimeError("no engine"))

    assert [ticket.refusal is not None for ticket in tickets] == [True] * 5
    assert hub.pool.slots() == []


def test_a_refill_that_fails_is_not_tried_again_at_once() -> None:
    hub = Hub(ready=1)
    hub.pool.sizing.keep_ready(USUAL)
    hub.pool.tick()

    assert hub.work(fails=RuntimeError("no such image"), broken=False) == ["make 1"]
    hub.later(1)
    assert hub.work() == []
    hub.later(5)
    assert hub.work() == ["make 2"]
