"""Is it worth asking the engine now?

After a few failures in a row calls that need it fail at once, for a while that doubles each time; then one try is let
through, and decides. Not safe for threads by itself: whoever owns it has a lock.
"""

from __future__ import annotations

from enum import StrEnum

FAILURES = 3
_FIRST_S, _LONGEST_S = 5.0, 60.0


class Circuit(StrEnum):
    CLOSED = "closed"  # the engine is asked
    OPEN = "open"  # it is not
    HALF_OPEN = "half_open"  # one try


class Breaker:
    def __init__(self) -> None:
        self._failures = 0
        self._opened = 0  # how often in a row
        self._open_until = 0.0
        self._trying = False
        self.why = ""  # it opened

    def state(self, now: float) -> Circuit:
        if not self._opened:
            return Circuit.CLOSED
        return Circuit.OPEN if now < self._open_until else Circuit.HALF_OPEN

    def may_try(self, now: float) -> bool:
        """Whether something may be begun. When half open, that is one thing at a time."""
        state = self.state(now)
        return state is Circuit.CLOSED or (state is Circuit.HALF_OPEN and not self._trying)

    def begin(self, now: float) -> None:
        """Something is begun. Its end must be reported."""
        self._trying = self.state(now) is Circuit.HALF_OPEN

    def succeeded(self) -> None:
        """The engine works, even if it has said no."""
        self._failures = self._opened = 0
        self._trying = False
        self.why = ""

    def failed(self, now: float, why: str) -> None:
        self._failures += 1
        tried, self._trying = self._trying, False
        if self.state(now) is Circuit.OPEN:
            return  # what was begun before it opened
        if tried or self._failures >= FAILURES:
            self._open_until = now + min(_FIRST_S * 2**self._opened, _LONGEST_S)
            self._opened += 1
            self.why = why

    def wait_s(self, now: float) -> float:
        """How long until the next try."""
        return max(self._open_until - now, 0.0) if self._opened else 0.0
