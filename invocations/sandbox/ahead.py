"""For whose calls is nothing imported ahead?

What a tool imports of others is usually imported once for all calls of a box, in the process that they are forked from. Where
that has ended the process, filled its memory or taken too long, the call does it by itself, inside its own walls, and ends as
its code deserves.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import BoxKey

_FORGOTTEN_AFTER_S = 3_600.0  # perhaps the host was only busy


class Ahead:
    """May be used from many threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._not_before: dict[BoxKey | None, float] = {}

    def may(self, key: BoxKey | None) -> bool:
        """Whether what a tool imports of others is imported before its calls."""
        return self._clock() >= self._not_before.get(key, 0.0)

    def may_not(self, key: BoxKey | None) -> None:
        """It came to nothing, and the call did well without."""
        now = self._clock()
        left = {each: until for each, until in list(self._not_before.items()) if until > now}
        self._not_before = {key: now + _FORGOTTEN_AFTER_S} | left
