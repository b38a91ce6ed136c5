"""Plans: boxes whose room is kept and that are still to be made."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.pool.slots import B, PoolSlotState

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.pool.inventory import BoxInventory
    from invocations.sandbox.pool.slots import BoxTicket, PoolSlot, Shape


class BoxReservations(Generic[B]):
    def __init__(self, ledger: BoxInventory[B]) -> None:
        self._ledger = ledger
        self._planned: deque[PoolSlot[B]] = deque()

    def __bool__(self) -> bool:
        return bool(self._planned)

    def add(self, shape: Shape, now: float, own: BoxTicket[B] | None) -> None:
        self._planned.append(self._ledger.add(shape, now, own=own))

    def take(self, may_try: Callable[[Shape], bool]) -> PoolSlot[B] | None:
        """The first that may be made now."""
        for planned in self._planned:
            if may_try(planned.shape):
                self._planned.remove(planned)
                return planned
        return None

    def coming(self) -> Counter[Shape]:
        """Boxes that are planned or being made for nobody in particular."""
        return Counter(slot.shape for slot in self._ledger.creating() if slot.want is None and not slot.doomed)

    def make_no_more_than(self, waiting: int, withdrawn: BoxTicket[B]) -> None:
        """``waiting``: how many calls wait for a box of the same shape still."""
        shape = withdrawn.want.shape
        for slot in self._ledger.creating():
            if slot.own is withdrawn:
                slot.own, slot.doomed = None, "nobody waits"
        spare = self.coming()[shape] - waiting
        for slot in list(self._planned):
            if slot.doomed or (slot.want is None and slot.shape == shape and spare > 0):
                spare -= not slot.doomed
                self._planned.remove(slot)
                self._ledger.move(slot, PoolSlotState.GONE)

    def drop(self, which: Callable[[PoolSlot[B]], bool] = lambda _: True) -> None:
        for slot in filter(which, list(self._planned)):
            self._planned.remove(slot)
            self._ledger.move(slot, PoolSlotState.GONE)
