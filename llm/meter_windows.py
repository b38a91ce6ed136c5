"""Meter windows: what a provider says was used, held against what was counted here.

A count of our own is exact, or it is an estimate that is wrong by some factor for each model. The factor is learned: a window of
earlier calls says what it was. So a provider that begins to report more or less is found, although no estimate is exact. A window
is a handful of sums; whoever keeps one for a model and a figure (input tokens, output tokens, money) adds calls to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LIMIT = 0.005  # half a per cent, above which a difference matters
SURE = 4.0  # standard errors, below which it may be chance
MIN_CALLS = 100  # fewer say nothing about the chance of an estimate


@dataclass(frozen=True, slots=True)
class MeterWindow:
    """The sums over some calls of what was reported and what was counted. Two windows add up to the one of all their calls."""

    calls: int = 0
    reported: int = 0
    counted: int = 0
    reported_squares: int = 0
    counted_squares: int = 0
    products: int = 0

    def __add__(self, other: MeterWindow) -> MeterWindow:
        return MeterWindow(
            self.calls + other.calls,
            self.reported + other.reported,
            self.counted + other.counted,
            self.reported_squares + other.reported_squares,
            self.counted_squares + other.counted_squares,
            self.products + other.products,
        )

    def add(self, reported: int, counted: int) -> MeterWindow:
        """The window with one more call. Raises ValueError for a figure below 0."""
        if min(reported, counted) < 0:
            raise ValueError("No figure of a call is negative.")
        return self + MeterWindow(1, reported, counted, reported**2, counted**2, reported * counted)

    @property
    def ratio(self) -> float:
        """What was reported for one that was counted. Raises ZeroDivisionError where nothing was counted."""
        return self.reported / self.counted

    @property
    def squared_error(self) -> float:
        """The square of the ratio's standard error, as a part of the ratio: 0 where each call has the same ratio."""
        # The sum of (reported - ratio * counted) squared over the calls, kept in whole numbers until the division.
        mine, theirs = self.counted, self.reported
        spread = self.reported_squares * mine**2 - 2 * theirs * mine * self.products + theirs**2 * self.counted_squares
        return spread / (theirs * mine) ** 2


@dataclass(frozen=True, slots=True)
class MeterDifference:
    """How far what is reported is from what was to be expected, as a part of that; ``error``: what chance may make of it."""

    part: float
    error: float

    @property
    def is_alarming(self) -> bool:
        return abs(self.part) > max(LIMIT, SURE * self.error)


def find_meter_difference(window: MeterWindow, learned: MeterWindow | None = None) -> MeterDifference | None:
    """The difference in a window; None where there is too little to compare.

    ``learned``: earlier calls, where the counts are estimates. Without it they are exact, and any difference is the provider's.
    """
    if not window.calls or not window.counted:
        return None
    if learned is None:
        return MeterDifference(window.ratio - 1, 0.0)
    if min(window.calls, learned.calls) < MIN_CALLS or not (learned.counted and learned.reported):
        return None
    if not window.reported:
        return MeterDifference(-1.0, 0.0)
    part = window.ratio / learned.ratio - 1
    return MeterDifference(part, math.sqrt(window.squared_error + learned.squared_error))
