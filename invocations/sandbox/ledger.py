"""Which boxes are there, how much room do they take, and which of them may go?

The pool's books. Every change of state goes through :meth:`Ledger.move`, which keeps the sums and the shelves right.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.slots import IDLE_BYTES, TRANSITIONS, B, Caps, Slot, State, Ticket

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from invocations.sandbox.slots import Shape, Want

IDLE = (State.READY, State.LOADED)
HELD = (State.LOADING, State.BUSY)  # by a tenant


def full_weight(shape: Shape) -> int:
    return IDLE_BYTES + shape.memory_bytes


class Ledger(Generic[B]):
    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.slots: dict[int, Slot[B]] = {}
        self.doomed: deque[Slot[B]] = deque()  # to be ended
        self.retired: Counter[str] = Counter()  # by reason
        self.bytes = 0
        self.held: dict[str, tuple[int, int]] = {}  # busy boxes and their bytes, by tenant
        self._blank: dict[Shape, list[Slot[B]]] = {}
        self._loaded: dict[Hashable, list[Slot[B]]] = {}
        self._number = 0

    def add(self, shape: Shape, now: float, *, own: Ticket[B] | None = None, refill: bool = False) -> Slot[B]:
        """Room for a box that is going to be made."""
        self._number += 1
        slot: Slot[B] = Slot(self._number, shape, now, own=own, want=own.want if own else None, refill=refill)
        slot.weight = full_weight(shape)
        self.slots[slot.number] = slot
        self.bytes += slot.weight
        return slot

    def move(self, slot: Slot[B], state: State) -> None:
        if state not in TRANSITIONS[slot.state]:
            raise AssertionError(f"A box goes from {slot.state} to {state}.")
        if slot.state in HELD:
            self._hold(slot, -1)
        shelf = self._shelf(slot)
        if shelf is not None:
            shelf.remove(slot)
            self._tidy(slot)
        slot.state = state
        self._weigh(slot)
        if state in HELD:
            self._hold(slot, 1)
        elif state is State.RETIRING:
            self.doomed.append(slot)
        elif state is State.GONE:
            del self.slots[slot.number]
        elif (shelf := self._shelf(slot)) is not None:
            shelf.append(slot)

    def retire(self, slot: Slot[B], why: str) -> None:
        slot.why = why
        self.retired[why] += 1
        self.move(slot, State.RETIRING)

    def fitting(self, want: Want) -> Slot[B] | None:
        """An idle box for this call: the one used last, so that the others get old and go."""
        if want.own:
            return None
        loaded = self._loaded.get(want.key) if want.key is not None else None
        slots = loaded or self._blank.get(want.shape)
        return slots[-1] if slots else None

    def has_loaded(self, key: Hashable) -> bool:
        """Whether there is a box of this key that calls can wait for."""
        return any(slot.loaded and slot.key == key and slot.state is State.BUSY for slot in self.slots.values())

    def blank(self, shape: Shape) -> int:
        return len(self._blank.get(shape, ()))

    def idle(self) -> list[Slot[B]]:
        return [slot for slot in self.slots.values() if slot.state in IDLE]

    def creating(self) -> Iterator[Slot[B]]:
        return (slot for slot in self.slots.values() if slot.state is State.CREATING)

    def share(self, want: Want, more: int = 0) -> float:
        """Of the tenant: its part of all boxes, or of all memory, whichever is larger."""
        boxes, held = self.held.get(want.tenant, (0, 0))
        held += more * full_weight(want.shape)
        return max((boxes + more) / self.caps.boxes, held / self.caps.memory_bytes)

    def worn_out(self, slot: Slot[B], now: float) -> str:
        if slot.calls >= self.caps.calls:
            return "calls"
        return "age" if now - slot.since >= self.caps.age_s else ""

    def has_room(self, boxes: int, size: int, keep: Slot[B] | None = None) -> bool:
        """Room for so much more, now. Where ending idle boxes makes it, they are ended, and there will be."""
        boxes += len(self.slots) - self.caps.boxes
        size += self.bytes - self.caps.memory_bytes
        if boxes <= 0 and size <= 0:
            return True
        leaving = [slot.weight for slot in self.slots.values() if slot.state is State.RETIRING]
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

    def _shelf(self, slot: Slot[B]) -> list[Slot[B]] | None:
        if slot.state is State.READY:
            return self._blank.setdefault(slot.shape, [])
        return self._loaded.setdefault(slot.key, []) if slot.state is State.LOADED else None

    def _tidy(self, slot: Slot[B]) -> None:
        if slot.state is State.READY and not self._blank[slot.shape]:
            del self._blank[slot.shape]
        elif slot.state is State.LOADED and not self._loaded[slot.key]:
            del self._loaded[slot.key]

    def _weigh(self, slot: Slot[B]) -> None:
        """What is idle has given its memory back; what is retiring keeps its room until it is known to be gone."""
        if slot.state is State.RETIRING:
            return
        weight = 0 if slot.state is State.GONE else IDLE_BYTES if slot.state in IDLE else full_weight(slot.shape)
        self.bytes += weight - slot.weight
        slot.weight = weight

    def _hold(self, slot: Slot[B], count: int) -> None:
        boxes, held = self.held.get(slot.tenant, (0, 0))
        boxes, held = boxes + count, held + count * full_weight(slot.shape)
        self.held[slot.tenant] = (boxes, held)
        if not boxes:
            del self.held[slot.tenant]
