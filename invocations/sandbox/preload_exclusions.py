"""Preload exclusions: for whose calls nothing is imported ahead.

What a tool imports of others is usually imported once for all calls of a box, in the process that they are forked from. Where
that has ended the process, filled its memory, taken too long or reached for others, which it may not as long as nobody calls,
the call does it by itself, inside its own walls, and ends as its code deserves.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_FORGOTTEN_AFTER_S = 3_600.0  # perhaps the host was only busy


class PreloadExclusions:
    """May be used from many threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._not_before: dict[Hashable, float] = {}

    def may(self, key: Hashable) -> bool:
        """Whether what a tool imports of others is imported before its calls."""
        return self._clock() >= self._not_before.get(key, 0.0)

    def note_failure(self, key: Hashable, *, ahead: bool) -> None:
        """A load came to nothing. The next ones do without; where that is no better, it was not why."""
        now = self._clock()
        left = {each: until for each, until in list(self._not_before.items()) if until > now and each != key}
        self._not_before = left | ({key: now + _FORGOTTEN_AFTER_S} if ahead else {})
