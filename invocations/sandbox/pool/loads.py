"""Loads: which tool's code is being put into a box, and whether one more box of it is worth a load.

What a tool's code imports of others takes much longer than most calls. So one box at a time is loaded for a key, whoever
waits for it and whoever gives up meanwhile, and another one only when calls have waited for the boxes that are loaded
as long together as a load takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

REST_S = 30.0  # after a load that was not over in time, before the next one


class LoadTimeout(Exception):
    """The tool's code was not loaded in time, so the tool was not called."""

    def __init__(self, message: str, *, retry_after_s: float = REST_S) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class _Load:
    """The last load of a key. ``waited_s``: how long calls have waited since for a box of it."""

    begun: float
    ended: float = 0.0  # 0: it goes on
    waited_s: float = 0.0
    rest_until: float = 0.0
    why: str = ""


class PackageLoads:
    """By key. Times come from outside."""

    def __init__(self) -> None:
        self._last: dict[Hashable, _Load] = {}

    def begin(self, key: Hashable, now: float) -> None:
        self._last[key] = _Load(now)

    def end(self, key: Hashable, now: float) -> None:
        self._last[key].ended = now

    def rest(self, key: Hashable, now: float, why: str) -> None:
        """It has timed out: whoever calls again at once is told so, at once."""
        self._last[key].rest_until, self._last[key].why = now + REST_S, why

    def refusal(self, key: Hashable, now: float) -> LoadTimeout | None:
        last = self._last.get(key)
        if last is None or now >= last.rest_until:
            return None
        return LoadTimeout(last.why, retry_after_s=last.rest_until - now)

    def go_on(self, key: Hashable) -> bool:
        last = self._last.get(key)
        return last is not None and not last.ended

    def span(self, key: Hashable, since: float) -> tuple[float, float] | None:
        """When the last one began and ended, where it went on after ``since``."""
        last = self._last.get(key)
        return (last.begun, last.ended) if last is not None and (last.ended or since) >= since else None

    def patience_s(self, key: Hashable) -> float:
        """How long a call waits at least before another box is loaded for it; 0 where nobody knows."""
        last = self._last.get(key)
        return last.ended - last.begun if last is not None and last.ended else 0.0

    def served(self, key: Hashable, since: float, now: float) -> None:
        """A call that waited since then has got a loaded box."""
        last = self._last.get(key)
        if last is not None and last.ended:
            last.waited_s += max(0.0, now - max(since, last.ended))

    def is_worth(self, key: Hashable, waiting: Iterable[float], now: float) -> bool:
        """Whether those that wait, since then, and those that have waited, have done so as long as a load takes."""
        last = self._last.get(key)
        if last is None:
            return True
        waited = sum(max(0.0, now - max(since, last.ended)) for since in waiting)
        return last.waited_s + waited >= last.ended - last.begun

    def forget(self, keep: Collection[Hashable], now: float) -> None:
        """All but these, those that go on and those that rest."""
        self._last = {
            key: last for key, last in self._last.items() if key in keep or not last.ended or now < last.rest_until
        }
