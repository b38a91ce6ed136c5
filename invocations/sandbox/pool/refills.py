"""Refills: when a blank box is made ahead of the calls that will want one, and of which shape.

Later rather than beside a call: making one takes the processor that the call needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from invocations.sandbox.pool.inventory import BoxInventory, compute_full_weight
from invocations.sandbox.pool.slots import B

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from invocations.sandbox.pool.slots import Shape
    from invocations.sandbox.pool.target_size import TargetSize

_AT_A_TIME = 2
_BY_S = 1.0  # however many calls run
_UNDER_PRESSURE_BY_S = 5.0
_PRESSURE = 60.0  # per cent of the time in which something waits for a processor


class Refills(Generic[B]):
    """``coming`` are boxes that are being made for nobody in particular, by shape."""

    def __init__(self, ledger: BoxInventory[B], sizing: TargetSize, pressure: Callable[[], float]) -> None:
        self._ledger, self._sizing, self._pressure = ledger, sizing, pressure
        self.short_since = 0.0  # of blank boxes
        self.not_before = 0.0

    def short(self, now: float) -> None:
        self.short_since = self.short_since or now

    def shape_in_short_supply(self, coming: Counter[Shape], now: float) -> Shape | None:
        for shape in self._sizing.shapes(now):
            if self._ledger.blank(shape) + coming[shape] < self._sizing.target(shape, now):
                return shape
        return None

    def next(self, coming: Counter[Shape], now: float) -> Shape | None:
        """Of which shape a box is wanted."""
        if not self.short_since or now < self.not_before:
            return None
        making = list(self._ledger.creating())
        if len(making) >= _AT_A_TIME or any(not slot.refill for slot in making):
            return None
        shape = self.shape_in_short_supply(coming, now)
        if shape is None:
            self.short_since = 0.0
        return shape

    def has_room_for(self, shape: Shape, now: float) -> bool:
        """And the calls that run have none of their processor taken away."""
        caps, ledger = self._ledger.caps, self._ledger
        room = caps.memory_bytes - ledger.bytes >= compute_full_weight(shape) and len(ledger.slots) < caps.boxes
        return room and self._is_calm(now)

    def _is_calm(self, now: float) -> bool:
        if not self._ledger.held:
            return True
        short = now - self.short_since
        if short < _BY_S:
            return False
        return short >= _UNDER_PRESSURE_BY_S or self._pressure() < _PRESSURE
