"""Sandbox pool shares: who gets a box when there is not room for all?"""

from __future__ import annotations

from invocations.sandbox.pool.slots import IDLE_BYTES, MIB, PoolSlotState
from tests.support.pool_harness import LARGE, Hub


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

    assert all(slot.state is PoolSlotState.BUSY for slot in hub.pool.slots())
    assert mine.state is PoolSlotState.BUSY
