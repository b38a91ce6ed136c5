"""Circuit breaker: whether it is worth asking the engine for a box now.

After a few failures in a row calls that need one fail at once, for a while that doubles each time; then one try is let
through, and decides. A box that the engine makes and that does not start is no fault of the engine: it counts for the boxes of
its kind only. Not safe for threads by itself: whoever owns it has a lock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from invocations.sandbox.pool.slots import BoxRefused

if TYPE_CHECKING:
    from collections.abc import Hashable

    from invocations.sandbox.pool.slots import Shape

FAILURES = 3
_FIRST_S, _LONGEST_S = 5.0, 60.0


class CircuitState(StrEnum):
    CLOSED = "closed"  # the engine is asked
    OPEN = "open"  # it is not
    HALF_OPEN = "half_open"  # one try


class CircuitBreaker:
    def __init__(self) -> None:
        self._failures = 0
        self._opened = 0  # how often in a row
        self._open_until = 0.0
        self._trying = False
        self.why = ""  # it opened

    def state(self, now: float) -> CircuitState:
        if not self._opened:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self._open_until else CircuitState.HALF_OPEN

    def may_try(self, now: float) -> bool:
        """Whether something may be begun. When half open, that is one thing at a time."""
        state = self.state(now)
        return state is CircuitState.CLOSED or (state is CircuitState.HALF_OPEN and not self._trying)

    def begin(self, now: float) -> None:
        """Something is begun. Its end must be reported."""
        self._trying = self.state(now) is CircuitState.HALF_OPEN

    def succeeded(self) -> None:
        """The engine works, even if it has said no."""
        self._failures = self._opened = 0
        self._trying = False
        self.why = ""

    def not_tried(self) -> None:
        """What was begun came to nothing for another reason."""
        self._trying = False

    def failed(self, now: float, why: str) -> None:
        self._failures += 1
        tried, self._trying = self._trying, False
        if self.state(now) is CircuitState.OPEN:
            return  # what was begun before it opened
        if tried or self._failures >= FAILURES:
            self._open_until = now + min(_FIRST_S * 2**self._opened, _LONGEST_S)
            self._opened += 1
            self.why = why

    def wait_s(self, now: float) -> float:
        """How long until the next try."""
        return max(self._open_until - now, 0.0) if self._opened else 0.0


class CircuitBreakers:
    def __init__(self) -> None:
        self.engine = CircuitBreaker()
        self._kinds: dict[Hashable, CircuitBreaker] = {}  # those of which the last box has not started

    def _of(self, shape: Shape) -> CircuitBreaker:
        return self._kinds.get(shape.kind) or CircuitBreaker()

    def may_try(self, shape: Shape, now: float) -> bool:
        return self.engine.may_try(now) and self._of(shape).may_try(now)

    def begin(self, shape: Shape, now: float) -> None:
        self.engine.begin(now)
        self._of(shape).begin(now)

    def succeeded(self, shape: Shape) -> None:
        self.engine.succeeded()
        self._kinds.pop(shape.kind, None)

    def failed(self, shape: Shape, now: float, why: str, *, broken: bool, died: bool) -> None:
        """``broken``: the engine does not work. ``died``: it does, and the box has not started."""
        if broken:
            self.engine.failed(now, why)
        else:
            self.engine.succeeded()
        if died:
            self._kinds.setdefault(shape.kind, CircuitBreaker()).failed(now, why)
        else:
            self._of(shape).not_tried()

    def refusal(self, shape: Shape, now: float) -> BoxRefused | None:
        """Why no box of this shape is begun now."""
        for what, breaker in (("The engine has", self.engine), ("Boxes of this image have", self._of(shape))):
            if breaker.state(now) is CircuitState.OPEN:
                wait = breaker.wait_s(now)
                sentence = f"{what} failed several times in a row, and the next try is in {wait:.0f} s. {breaker.why}"
                return BoxRefused(sentence, retry_after_s=wait)
        return None
