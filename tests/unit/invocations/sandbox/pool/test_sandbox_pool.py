"""Sandbox pool: which box serves which call, and what becomes of it afterwards?"""

from __future__ import annotations

import pytest

from invocations.sandbox.pool.slots import IDLE_BYTES, MIB, BoxRefused, IdleTerms, PoolSlotState
from tests.support.pool_harness import LARGE, USUAL, Hub


def test_a_box_is_used_again_for_the_same_key_and_for_no_other() -> None:
    hub = Hub()
    first = hub.slot("a")
    hub.pool.give_back(first)
    assert first.state is PoolSlotState.LOADED

    again = hub.ask("a")
    other = hub.ask("b")

    assert again.slot is first  # at once, with no work done
    assert not other.settled
    hub.work()
    assert other.slot is not None
    assert other.slot is not first


def test_two_callers_of_one_key_have_two_boxes() -> None:
    hub = Hub()

    assert hub.slot("a") is not hub.slot("a")


def test_a_box_without_a_key_serves_once() -> None:
    hub = Hub()
    slot = hub.slot(None)

    hub.pool.give_back(slot)

    assert hub.work() == [f"end {slot.number}"]
    assert hub.pool.slots() == []
    assert hub.pool.ledger.retired == {"single use": 1}


def test_a_blank_box_that_nothing_was_put_into_serves_any_key() -> None:
    hub = Hub()
    slot = hub.slot("a")

    hub.pool.give_back(slot, used=False)

    assert slot.state is PoolSlotState.READY
    assert hub.ask("b", "another tenant").slot is slot


@pytest.mark.parametrize("unfit", ["dirty", "lost"])
def test_an_unfit_box_is_not_used_again_and_keeps_its_room_until_it_is_gone(unfit: str) -> None:
    hub = Hub(boxes=1)
    slot = hub.slot("a")

    hub.pool.give_back(slot, unfit=unfit)
    ticket = hub.ask("a")

    job = hub.pool.next_job()
    assert job is not None
    assert (job.slot, job.make) == (slot, False)
    assert hub.pool.next_job() is None
    hub.pool.gone(slot)
    hub.work()
    assert ticket.slot not in (None, slot)
    assert hub.pool.ledger.retired[unfit] == 1


def test_a_box_that_cannot_be_ended_is_tried_again_later() -> None:
    hub = Hub()
    slot = hub.slot(None)
    hub.pool.give_back(slot)
    job = hub.pool.next_job()
    assert job is not None

    hub.pool.not_gone(job.slot)

    assert hub.work() == []
    hub.later(6)
    assert hub.work() == [f"end {slot.number}"]


def test_boxes_retire_after_so_many_calls_and_so_much_time() -> None:
    hub = Hub(calls=3, age_s=100, idle_s=1000)
    first = hub.slot("a")
    hub.pool.give_back(first)
    for _ in range(2):
        hub.pool.give_back(hub.slot("a"))
    assert first.why == "calls"

    second = hub.slot("a")
    hub.pool.give_back(second)
    hub.later(101)
    assert second.why == "age"

    third = hub.slot("a")
    hub.now += 101
    hub.pool.give_back(third)
    assert third.why == "age"


@pytest.mark.req("BRING-2")
def test_a_box_that_keeps_something_ready_goes_sooner_and_counts_for_what_it_holds() -> None:
    hub = Hub(idle_s=300, boxes=60)
    kept = [hub.slot(str(number), idle=IdleTerms(80 * MIB, 110)) for number in range(50)]
    usual = hub.slot("usual")
    for slot in (*kept, usual):
        hub.pool.give_back(slot)
    assert hub.pool.ledger.bytes == 50 * 80 * MIB + 16 * MIB

    hub.later(111)
    hub.work()

    assert [slot.state for slot in kept] == [PoolSlotState.GONE] * 50
    assert usual.state is PoolSlotState.LOADED


def test_idle_boxes_go_but_for_those_kept_ready() -> None:
    hub = Hub(ready=1, idle_s=60)
    hub.pool.sizing.keep_ready(USUAL)
    hub.pool.tick()
    hub.work()
    loaded = hub.slot("a", shape=LARGE)
    hub.pool.give_back(loaded)

    hub.later(61)
    hub.work()

    assert loaded.why == "idle"
    assert [(slot.shape, slot.state) for slot in hub.pool.slots()] == [(USUAL, PoolSlotState.READY)]


def test_when_it_is_full_the_box_unused_for_longest_makes_room() -> None:
    hub = Hub(boxes=2)
    for key in ("a", "b", "a"):
        hub.now += 1
        hub.pool.give_back(hub.slot(key))

    ticket = hub.ask("c")

    assert hub.work() == ["end 2", "make 3"]
    assert ticket.slot is not None
    assert hub.ask("a").slot is not None
    assert hub.pool.ledger.retired == {"room": 1}


def test_busy_boxes_are_never_ended_for_room() -> None:
    hub = Hub(boxes=1)
    busy = hub.slot("a")

    ticket = hub.ask("b")

    assert hub.work() == []
    assert ticket.blocked
    hub.pool.give_back(busy)
    assert hub.work() == ["end 1", "make 2"]
    assert ticket.slot is not None


def test_memory_is_counted_in_full_only_while_a_box_is_busy() -> None:
    hub = Hub(memory_bytes=2 * 256 * MIB + 4 * IDLE_BYTES)
    for key in ("a", "b", "c", "d"):
        hub.pool.give_back(hub.slot(key))
    assert len(hub.pool.slots()) == 4

    first, second, third = hub.ask("a"), hub.ask("b"), hub.ask("c")

    assert first.slot and second.slot and not third.settled
    hub.pool.give_back(first.slot)
    hub.work()
    assert third.slot is not None


def test_what_can_never_fit_is_refused_at_once_with_the_setting_to_change() -> None:
    hub = Hub(memory_bytes=512 * MIB)

    ticket = hub.ask("a", shape=LARGE)

    assert isinstance(ticket.refusal, BoxRefused)
    assert "TOOLHUB_SANDBOX_MAX_MEMORY_MB" in str(ticket.refusal)


def test_a_box_made_for_one_call_is_that_calls_and_no_blank_one_is_taken_for_it() -> None:
    hub = Hub(ready=1)
    hub.pool.sizing.keep_ready(USUAL)
    hub.pool.tick()
    hub.work()

    cold = hub.ask(None, own=True)
    other = hub.ask("b")

    assert other.slot is not None
    assert not cold.settled
    hub.work()
    assert cold.slot is not None
    assert cold.slot.want is cold.want


def test_a_box_made_for_one_call_is_nobody_elses_even_when_nothing_was_put_into_it() -> None:
    hub = Hub()
    slot = hub.slot(None, own=True)

    hub.pool.give_back(slot, used=False)

    assert hub.work() == [f"end {slot.number}"]


# -- giving up


def test_who_waits_no_longer_leaves_no_box_behind_that_nobody_began_to_make() -> None:
    hub = Hub()
    gave_up = BoxRefused("cancelled", cancelled=True)
    cold, warm = hub.ask(None, own=True), hub.ask("a")

    assert hub.pool.withdraw(cold, gave_up)
    assert hub.pool.withdraw(warm, gave_up)

    assert cold.refusal is warm.refusal is gave_up
    assert hub.work() == []
    assert hub.pool.slots() == []


def test_a_box_that_is_being_made_when_its_caller_gives_up_is_blank_for_the_next_or_ended() -> None:
    hub = Hub()
    cold, warm = hub.ask(None, own=True), hub.ask("a")
    jobs = [hub.pool.next_job(), hub.pool.next_job()]
    hub.pool.withdraw(cold, BoxRefused(""))
    hub.pool.withdraw(warm, BoxRefused(""))

    for job in jobs:
        assert job is not None
        hub.pool.made_one(job.slot, "box", 0.2)

    assert hub.work() == ["end 1"]
    assert hub.states() == [PoolSlotState.READY]


def test_one_cannot_give_up_what_one_has() -> None:
    hub = Hub()
    ticket = hub.ask("a")
    hub.work()

    assert not hub.pool.withdraw(ticket, BoxRefused(""))
    assert ticket.slot is not None


def test_boxes_of_another_image_go_the_busy_ones_after_their_call() -> None:
    hub = Hub()
    idle, busy = hub.slot("a"), hub.slot("b")
    hub.pool.give_back(idle)

    hub.pool.discard(hub.pool.slots(), "image")

    assert idle.state is PoolSlotState.RETIRING
    assert busy.state is PoolSlotState.BUSY
    hub.pool.give_back(busy)
    hub.work()
    assert hub.pool.slots() == []
    assert hub.pool.ledger.retired == {"image": 2}


def test_closing_refuses_those_who_wait_and_ends_everything() -> None:
    hub = Hub(boxes=3)
    idle, busy = hub.slot("a"), hub.slot("b")
    hub.pool.give_back(idle)
    being_made = hub.ask("c")
    job = hub.pool.next_job()
    assert job is not None
    waiting = hub.ask("d")

    hub.pool.close()

    assert isinstance(being_made.refusal, BoxRefused)
    assert isinstance(waiting.refusal, BoxRefused)
    assert waiting.refusal.cancelled
    hub.pool.made_one(job.slot, "box", 0.2)
    hub.pool.give_back(busy)
    hub.work()
    assert hub.pool.slots() == []
    after = hub.ask("a").refusal
    assert isinstance(after, BoxRefused)
    assert after.cancelled


def test_what_a_call_waits_for_is_made_before_boxes_are_ended_and_these_leave_a_hand_free() -> None:
    hub = Hub()
    for slot in [hub.slot(None) for _ in range(5)]:
        hub.pool.give_back(slot)
    hub.ask("a")

    jobs = [job for _ in range(6) if (job := hub.pool.next_job()) is not None]

    assert [job.make for job in jobs] == [True, False, False, False]
    hub.pool.gone(jobs[1].slot)
    later = hub.pool.next_job()
    assert later is not None
    assert not later.make
