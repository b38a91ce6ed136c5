"""Target size: how many blank boxes of which shape should be ready.

As many as are wanted while one is made: the burst that the operator sets, and the rate at which boxes of the shape are
taken times the time that making one takes. A shape that nobody has asked for lately needs none, but for the usual one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from invocations.sandbox.pool.slots import Shape

_RATE_OVER_S = 10.0
_KEPT = 256
_WEIGHT = 0.2  # of the last box in the average


class TargetSize:
    def __init__(self, *, burst: int, most: int, forget_after_s: float) -> None:
        self._burst, self._most, self._forget_after_s = burst, most, forget_after_s
        self._taken: dict[Shape, deque[float]] = {}
        self._usual: Shape | None = None
        self.make_s = 0.3

    def keep_ready(self, usual: Shape | None) -> None:
        """The shape that most calls need: there is a box of it before the first of them comes."""
        self._usual = usual

    def took(self, shape: Shape, now: float) -> None:
        self._taken.setdefault(shape, deque(maxlen=_KEPT)).append(now)

    def made(self, seconds: float) -> None:
        self.make_s += _WEIGHT * (seconds - self.make_s)

    def target(self, shape: Shape, now: float) -> int:
        taken = self._taken.get(shape, ())
        if not self._burst or not (taken or shape == self._usual):
            return 0
        lately = sum(1 for moment in taken if now - moment <= _RATE_OVER_S)
        return min(self._burst + round(lately / _RATE_OVER_S * self.make_s), self._most)

    def shapes(self, now: float) -> Iterable[Shape]:
        """The usual one first, then those most lately asked for."""
        for shape in [shape for shape, taken in self._taken.items() if now - taken[-1] > self._forget_after_s]:
            del self._taken[shape]
        lately = sorted(self._taken, key=lambda shape: -self._taken[shape][-1])
        return dict.fromkeys([*([self._usual] if self._usual is not None else []), *lately])
