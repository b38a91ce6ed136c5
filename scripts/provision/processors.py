"""Processors: whether the machine has some to spare."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import monotonic

WHILE_S = 10.0
MUCH = 0.2
TIMES = Path("/proc/stat")


class IdleTime:
    """Of all processors, from while to while. Linux says it; elsewhere there never is much."""

    def __init__(self) -> None:
        self._begin_while()

    def is_much(self) -> bool:
        """A fifth or more, of a while that has just ended; the next one begins then."""
        if monotonic() - self._begun < WHILE_S:
            return False
        idle, total = self._idle, self._total
        self._begin_while()
        return self._total > total and (self._idle - idle) / (self._total - total) >= MUCH

    def _begin_while(self) -> None:
        self._begun = monotonic()
        self._idle, self._total = read_times()


def share_idle(since: tuple[int, int]) -> float | None:
    """Of all processors, since then (:func:`read_times`); None where nobody counts."""
    idle, total = read_times()
    return (idle - since[0]) / (total - since[1]) if total > since[1] else None


def read_times() -> tuple[int, int]:
    """Since the machine started, in ticks: (what nobody used or waited for the disk, all)."""
    with contextlib.suppress(OSError):
        # user nice system idle iowait irq softirq steal, and the times of guests, which are in user and nice as well
        ticks = [int(each) for each in TIMES.read_text().splitlines()[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)
    return 0, 0
