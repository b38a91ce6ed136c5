"""Waiting boxes: do boxes that wait with a server in them count by what they hold, and stay within what a tenant may have?"""

from __future__ import annotations

import pytest

from invocations.sandbox.pool.inventory import MOST_WAITING_OF_A_TENANT, compute_full_weight
from invocations.sandbox.pool.slots import MIB, USUAL_IDLE, IdleTerms, PoolSlotState
from tests.support.pool_harness import USUAL, Hub

SERVER = IdleTerms(memory_bytes=80 * MIB, most_s=110.0)
AHEAD = IdleTerms(memory_bytes=80 * MIB, most_s=60.0, for_one_call=True)


@pytest.mark.req("SVC-10")
def test_a_waiting_box_counts_by_what_it_holds() -> None:
    hub = Hub()
    slot = hub.slot("a", idle=SERVER)
    hub.pool.give_back(slot)
    assert hub.pool.ledger.bytes == 80 * MIB

    hub.pool.weigh_waiting(lambda _: 200 * MIB)
    assert hub.pool.ledger.bytes == 200 * MIB

    hub.pool.weigh_waiting(lambda _: 30 * MIB)
    assert hub.pool.ledger.bytes == 80 * MIB
    assert slot.state is PoolSlotState.LOADED


@pytest.mark.req("SVC-10")
def test_boxes_that_hold_too_much_together_go() -> None:
    hub = Hub(memory_bytes=600 * MIB)
    slots = [hub.slot(key, idle=SERVER) for key in ("a", "b")]
    for slot in slots:
        hub.pool.give_back(slot)
    third = hub.slot("c", idle=SERVER)
    hub.pool.give_back(third)

    hub.pool.weigh_waiting(lambda _: 250 * MIB)
    hub.work()

    assert hub.pool.ledger.bytes <= 600 * MIB
    assert len(hub.pool.slots()) == 2


@pytest.mark.req("SVC-10")
def test_a_box_begun_for_one_call_that_holds_more_than_it_may_goes() -> None:
    hub = Hub()
    slot = hub.slot("a", idle=AHEAD)
    slot.loaded = True
    hub.pool.give_back(slot, used=False)
    assert slot.state is PoolSlotState.LOADED

    hub.pool.weigh_waiting(lambda _: 81 * MIB)

    assert hub.work() == [f"end {slot.number}"]
    assert hub.pool.ledger.retired == {"memory": 1}


@pytest.mark.req("SVC-10")
def test_a_tenant_has_only_so_many_waiting() -> None:
    hub = Hub()
    slots = [hub.slot(f"key {number}", idle=SERVER) for number in range(MOST_WAITING_OF_A_TENANT + 1)]
    other = hub.slot("other", "another tenant", idle=SERVER)
    for slot in (other, *slots):
        hub.now += 1
        hub.pool.give_back(slot)

    hub.pool.weigh_waiting(lambda _: 0)

    assert slots[0].state is PoolSlotState.RETIRING
    assert {slot.state for slot in (other, *slots[1:])} == {PoolSlotState.LOADED}


@pytest.mark.req("SVC-10")
def test_a_box_that_nothing_was_put_into_counts_as_a_blank_one() -> None:
    hub = Hub()
    slot = hub.slot("a", idle=SERVER)

    hub.pool.give_back(slot, used=False)

    assert hub.pool.ledger.bytes == USUAL_IDLE.memory_bytes < compute_full_weight(USUAL)


@pytest.mark.req("SVC-10", "BRING-2")
def test_of_fifty_servers_that_nobody_calls_none_is_left_after_two_minutes() -> None:
    hub = Hub(boxes=64)
    for number in range(40):
        hub.pool.give_back(hub.slot(f"server {number}", f"tenant {number % 10}", idle=SERVER))
    for number in range(10):
        slot = hub.slot(f"of npm {number}", f"tenant {number}", idle=AHEAD)
        slot.loaded = True
        hub.pool.give_back(slot, used=False)
    assert hub.states() == [PoolSlotState.LOADED] * 50

    hub.later(120)
    hub.work()

    assert (hub.states(), hub.pool.ledger.bytes) == ([], 0)
