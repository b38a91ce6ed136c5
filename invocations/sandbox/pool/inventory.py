"""Inventory: which boxes there are, how much room they take, and which of them may go.

The pool's books. Every change of state goes through :meth:`Ledger.move`, which keeps the sums and the shelves right.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.pool.slots import (
    IDLE_BYTES,
    TRANSITIONS,
    USUAL_IDLE,
    B,
    BoxTicket,
    PoolCaps,
    PoolSlot,
    PoolSlotState,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from invocations.sandbox.pool.slots import BoxRequest, Shape

IDLE = (PoolSlotState.READY, PoolSlotState.LOADED)
MOST_WAITING_OF_A_TENANT = 8  # with a server in them
HELD = (PoolSlotState.LOADING, PoolSlotState.BUSY)  # by a tenant


def compute_full_weight(shape: Shape) -> int:
    return IDLE_BYTES + shape.memory_bytes


class BoxInventory(Generic[B]):
    def __init__(self, caps: PoolCaps) -> None:
        self.caps = caps
        self.slots: dict[int, PoolSlot[B]] = {}
        self.doomed: deque[PoolSlot[B]] = deque()  # to be ended
        self.retired: Counter[str] = Counter()  # by reason
        self.bytes = 0
        self.held: dict[str, tuple[int, int]] = {}  # busy boxes and their bytes, by tenant
        self._blank: dict[Shape, list[PoolSlot[B]]] = {}
        self._loaded: dict[Hashable, list[PoolSlot[B]]] = {}
        self._busy: Counter[Hashable] = Counter()  # boxes that are loaded, by key
        self._number = 0

    def add(self, shape: Shape, now: float, *, own: BoxTicket[B] | None = None, refill: bool = False) -> PoolSlot[B]:
        """Room for a box that is going to be made."""
        self._number += 1
        slot: PoolSlot[B] = PoolSlot(self._number, shape, now, own=own, want=own.want if own else None, refill=refill)
        slot.weight = compute_full_weight(shape)
        self.slots[slot.number] = slot
        self.bytes += slot.weight
        return slot

    def move(self, slot: PoolSlot[B], state: PoolSlotState) -> None:
        if state not in TRANSITIONS[slot.state]:
            raise AssertionError(f"A box goes from {slot.state} to {state}.")
        if slot.state in HELD:
            self._hold(slot, -1)
        if slot.state is PoolSlotState.BUSY and slot.loaded:
            self._busy[slot.key] -= 1
            if not self._busy[slot.key]:
                del self._busy[slot.key]
        shelf = self._shelf(slot)
        if shelf is not None:
            shelf.remove(slot)
            self._tidy(slot)
        slot.state = state
        if state not in IDLE:
            slot.seen_bytes = 0
        self._weigh(slot)
        if state is PoolSlotState.BUSY and slot.loaded:
            self._busy[slot.key] += 1
        if state in HELD:
            self._hold(slot, 1)
        elif state is PoolSlotState.RETIRING:
            self.doomed.append(slot)
        elif state is PoolSlotState.GONE:
            del self.slots[slot.number]
        elif (shelf := self._shelf(slot)) is not None:
            shelf.append(slot)

    def retire(self, slot: PoolSlot[B], why: str) -> None:
        slot.why = why
        self.retired[why] += 1
        self.move(slot, PoolSlotState.RETIRING)

    def find_match(self, want: BoxRequest) -> PoolSlot[B] | None:
        """An idle box for this call: the one used last, so that the others get old and go."""
        if want.own:
            return None
        key = want.standby_key if want.key is None else want.key
        loaded = self._loaded.get(key) if key is not None else None
        slots = loaded or self._blank.get(want.shape)
        return slots[-1] if slots else None

    def has_loaded(self, key: Hashable) -> bool:
        """Whether there is a box of this key that calls can wait for."""
        return key in self._busy

    def blank(self, shape: Shape) -> int:
        return len(self._blank.get(shape, ()))

    def idle(self) -> list[PoolSlot[B]]:
        return [slot for slot in self.slots.values() if slot.state in IDLE]

    def creating(self) -> Iterator[PoolSlot[B]]:
        return (slot for slot in self.slots.values() if slot.state is PoolSlotState.CREATING)

    def share(self, want: BoxRequest, more: int = 0) -> float:
        """Of the tenant: its part of all boxes, or of all memory, whichever is larger."""
        boxes, held = self.held.get(want.tenant, (0, 0))
        held += more * compute_full_weight(want.shape)
        return max((boxes + more) / self.caps.boxes, held / self.caps.memory_bytes)

    def is_used_up(self, slot: PoolSlot[B], *, used: bool) -> bool:
        """It was for one call, and that has been in it."""
        return slot.want is not None or (used and (slot.key is None or slot.idle.for_one_call))

    def may_wait_s(self, slot: PoolSlot[B]) -> float:
        """How long it may be idle, at most as long as any."""
        return min(self.caps.idle_s, slot.idle.most_s or self.caps.idle_s)

    def worn_out(self, slot: PoolSlot[B], now: float) -> str:
        if slot.calls >= self.caps.calls:
            return "calls"
        return "age" if now - slot.since >= self.caps.age_s else ""

    def has_room(self, boxes: int, size: int, keep: PoolSlot[B] | None = None) -> bool:
        """Room for so much more, now. Where ending idle boxes makes it, they are ended, and there will be."""
        boxes += len(self.slots) - self.caps.boxes
        size += self.bytes - self.caps.memory_bytes
        if boxes <= 0 and size <= 0:
            return True
        leaving = [slot.weight for slot in self.slots.values() if slot.state is PoolSlotState.RETIRING]
        boxes, size = boxes - len(leaving), size - sum(leaving)
        idle = [slot for slot in self.idle() if slot is not keep]
        if boxes > len(idle) or size > sum(slot.weight for slot in idle):
            return False  # all of them would not be enough
        owned = Counter(slot.tenant for slot in self.slots.values())
        while boxes > 0 or size > 0:
            victim = min(idle, key=lambda slot: (-owned[slot.tenant], slot.used))
            idle.remove(victim)
            owned[victim.tenant] -= 1
            boxes, size = boxes - 1, size - victim.weight
            self.retire(victim, "room")
        return False

    def _shelf(self, slot: PoolSlot[B]) -> list[PoolSlot[B]] | None:
        if slot.state is PoolSlotState.READY:
            return self._blank.setdefault(slot.shape, [])
        return self._loaded.setdefault(slot.key, []) if slot.state is PoolSlotState.LOADED else None

    def _tidy(self, slot: PoolSlot[B]) -> None:
        if slot.state is PoolSlotState.READY and not self._blank[slot.shape]:
            del self._blank[slot.shape]
        elif slot.state is PoolSlotState.LOADED and not self._loaded[slot.key]:
            del self._loaded[slot.key]

    def weigh_waiting(self, seen: Mapping[int, int]) -> None:
        """Count those that wait with a server by what they hold, by their number. What was begun for one call and holds more than it
        may goes, since that call can start its own; so do those of a tenant that were used longest ago, beyond so many."""
        for slot in [
            each for number in seen if (each := self.slots.get(number)) and each.state is PoolSlotState.LOADED
        ]:
            slot.seen_bytes = seen[slot.number]
            self._weigh(slot)
            if slot.idle.for_one_call and slot.seen_bytes > slot.idle.memory_bytes:
                self.retire(slot, "memory")
        of_tenant: Counter[str] = Counter()
        for slot in sorted(self.list_waiting(), key=lambda each: each.used, reverse=True):
            of_tenant[slot.tenant] += 1
            if of_tenant[slot.tenant] > MOST_WAITING_OF_A_TENANT:
                self.retire(slot, "tenant")

    def list_waiting(self) -> list[PoolSlot[B]]:
        """Those that wait with a server in them."""
        return [
            slot for slot in self.slots.values() if slot.state is PoolSlotState.LOADED and slot.idle is not USUAL_IDLE
        ]

    def _weigh(self, slot: PoolSlot[B]) -> None:
        """What is idle has given its memory back; what is retiring keeps its room until it is known to be gone."""
        if slot.state is PoolSlotState.RETIRING:
            return
        weight = (
            0
            if slot.state is PoolSlotState.GONE
            else min(max(slot.idle.memory_bytes, slot.seen_bytes), compute_full_weight(slot.shape))
            if slot.state in IDLE
            else compute_full_weight(slot.shape)
        )
        self.bytes += weight - slot.weight
        slot.weight = weight

    def _hold(self, slot: PoolSlot[B], count: int) -> None:
        boxes, held = self.held.get(slot.tenant, (0, 0))
        boxes, held = boxes + count, held + count * compute_full_weight(slot.shape)
        self.held[slot.tenant] = (boxes, held)
        if not boxes:
            del self.held[slot.tenant]
