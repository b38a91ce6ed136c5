from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from invocations.sandbox.breaker import Circuit
from invocations.sandbox.pool import Pool
from invocations.sandbox.slots import IDLE_BYTES, MIB, Caps, Refused, Slot, State, Ticket, Want


@dataclass(frozen=True)
class Shape:
    memory_bytes: int = 256 * MIB
    name: str = "usual"

    @property
    def kind(self) -> str:
        return self.name


USUAL, LARGE = Shape(), Shape(1024 * MIB, "large")


class Hub:
    """A pool whose work is done when the test says so, at a time that the test says."""

    def __init__(self, pressure: float = 0.0, **caps: Any) -> None:
        self.now = 1000.0
        self.pool: Pool[str] = Pool(
            Caps(**{"memory_bytes": 64 * 1024 * MIB, "ready": 0} | caps),
            clock=lambda: self.now,
            pressure=lambda: pressure,
        )

    def work(self, *, fails: Exception | None = None, broken: bool = True, died: bool = False) -> list[str]:
        """Do all that there is to do; returns what it was."""
        done = []
        while (job := self.pool.next_job()) is not None:
            done.append(f"{'make' if job.make else 'end'} {job.slot.number}")
            if not job.make:
                self.pool.gone(job.slot)
            elif fails is not None:
                self.pool.not_made(job.slot, fails, broken=broken, died=died)
            else:
                self.pool.made_one(job.slot, f"box {job.slot.number}", 0.25)
        return done

    def ask(self, key: str | None = "a", tenant: str = "t", shape: Shape = USUAL, *, own: bool = False) -> Ticket[str]:
        return self.pool.ask(Want(shape, tenant, key, own=own))

    def slot(self, *args: Any, **more: Any) -> Slot[str]:
        ticket = self.ask(*args, **more)
        self.work()
        assert ticket.slot is not None, ticket.refusal
        return ticket.slot

    def states(self) -> list[State]:
        return [slot.state for slot in self.pool.slots()]

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.pool.tick()


def test_a_box_is_used_again_for_the_same_key_and_for_no_other() -> None:
    hub = Hub()
    first = hub.slot("a")
    hub.pool.give_back(first)
    assert first.state is State.LOADED

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

    assert slot.state is State.READY
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
    assert [(slot.shape, slot.state) for slot in hub.pool.slots()] == [(USUAL, State.READY)]


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

    assert isinstance(ticket.refusal, Refused)
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


# -- fair shares


def test_the_next_box_goes_to_the_tenant_that_has_fewest() -> None:
    hub = Hub(boxes=3)
    held = [hub.slot("a", "greedy") for _ in range(3)]
    waiting = [hub.ask("a", "greedy") for _ in range(3)]
    modest = hub.ask("m", "modest")

    hub.pool.give_back(held[0])
    hub.work()

    assert modest.slot is not None
    assert not any(ticket.settled for ticket in waiting)


def test_whoever_holds_more_than_a_share_is_not_served_from_its_own_boxes_while_somebody_waits() -> None:
    hub = Hub(boxes=2)
    first, second = hub.slot("a", "greedy"), hub.slot("a", "greedy")
    modest, again = hub.ask("m", "modest"), hub.ask("a", "greedy")

    hub.pool.give_back(first)

    assert not again.settled
    hub.work()
    assert modest.slot is not None
    hub.pool.give_back(second)
    assert again.slot is second


def test_shares_are_of_memory_too() -> None:
    hub = Hub(boxes=100, memory_bytes=4 * (IDLE_BYTES + 1024 * MIB))
    large = [hub.slot("l", "large", LARGE) for _ in range(4)]
    more = hub.ask("l", "large", LARGE)
    small = hub.ask("s", "small", LARGE)

    hub.pool.give_back(large[0])
    hub.work()

    assert small.slot is not None
    assert not more.settled


def test_a_call_that_needs_much_room_is_not_overtaken_for_ever() -> None:
    hub = Hub(memory_bytes=IDLE_BYTES * 8 + 1024 * MIB)
    small = [hub.slot(f"s{number}", f"t{number}") for number in range(3)]
    large = hub.ask("l", "large", LARGE)
    hub.pool.give_back(small[0])
    early = hub.ask("s0", "t0")
    assert early.slot is not None

    hub.later(3)
    hub.pool.give_back(early.slot)
    late = hub.ask("s0", "t0")

    assert not late.settled
    for slot in small[1:]:
        hub.pool.give_back(slot)
    hub.work()
    assert large.slot is not None


def test_a_tenant_that_asks_for_too_much_again_and_again_does_not_stop_the_others() -> None:
    hub = Hub(memory_bytes=IDLE_BYTES * 8 + 1024 * MIB)
    hub.slot("long", "busy")
    mine = hub.slot("s", "mine")
    hub.pool.give_back(mine)
    hub.ask("l", "large", LARGE)
    hub.later(3)
    assert not hub.ask("s", "mine").settled

    hub.later(5)
    hub.ask("l", "large", LARGE)
    hub.later(3)

    assert all(slot.state is State.BUSY for slot in hub.pool.slots())
    assert mine.state is State.BUSY


# -- ahead


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
    assert slot.state is State.BUSY


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
    assert hub.states() == [State.LOADED]


def test_boxes_that_are_taken_often_are_kept_ready_in_numbers() -> None:
    hub = Hub(ready=1, boxes=8)
    for _ in range(40):
        hub.pool.give_back(hub.slot(None))
        hub.now += 0.1

    hub.work()

    ready = hub.states().count(State.READY)
    assert ready == 2  # one for the burst, and 4 a second times a quarter of a second
    hub.later(400)
    hub.work()
    assert hub.states() == []


# -- what goes wrong


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
    assert hub.pool.breakers.engine.state(hub.now) is Circuit.CLOSED


def test_when_the_engine_is_broken_calls_fail_at_once_until_one_try_succeeds() -> None:
    hub = Hub()
    for _ in range(3):
        hub.ask("a")
        hub.work(fails=RuntimeError("no engine"))

    refused = hub.ask("a")
    assert isinstance(refused.refusal, Refused)
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
    assert isinstance(refused.refusal, Refused)
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


# -- giving up


def test_who_waits_no_longer_leaves_no_box_behind_that_nobody_began_to_make() -> None:
    hub = Hub()
    gave_up = Refused("cancelled", cancelled=True)
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
    hub.pool.withdraw(cold, Refused(""))
    hub.pool.withdraw(warm, Refused(""))

    for job in jobs:
        assert job is not None
        hub.pool.made_one(job.slot, "box", 0.2)

    assert hub.work() == ["end 1"]
    assert hub.states() == [State.READY]


def test_one_cannot_give_up_what_one_has() -> None:
    hub = Hub()
    ticket = hub.ask("a")
    hub.work()

    assert not hub.pool.withdraw(ticket, Refused(""))
    assert ticket.slot is not None


def test_boxes_of_another_image_go_the_busy_ones_after_their_call() -> None:
    hub = Hub()
    idle, busy = hub.slot("a"), hub.slot("b")
    hub.pool.give_back(idle)

    hub.pool.discard(hub.pool.slots(), "image")

    assert idle.state is State.RETIRING
    assert busy.state is State.BUSY
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

    assert isinstance(being_made.refusal, Refused)
    assert isinstance(waiting.refusal, Refused)
    assert waiting.refusal.cancelled
    hub.pool.made_one(job.slot, "box", 0.2)
    hub.pool.give_back(busy)
    hub.work()
    assert hub.pool.slots() == []
    after = hub.ask("a").refusal
    assert isinstance(after, Refused)
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
