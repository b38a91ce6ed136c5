"""Forecast: what will be used by the end of the window, and when the budget is used up at this pace.

A straight line: as fast as in this window so far, and, while it is young, as in the windows before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from access.budgets.lines import BudgetLine

TOO_EARLY = 0.05  # of a window; before that, and without windows to compare with, anything would be a guess


@dataclass(frozen=True, slots=True)
class Forecast:
    """``full_at``: when nothing is left; None: not in this window."""

    by_end: int
    full_at: datetime | None


def compute_forecast(line: BudgetLine, past: Sequence[int], now: datetime) -> Forecast | None:
    """``past``: what earlier windows used, of as many as there were. None: there is nothing to go by."""
    ends_at = line.resets_at
    if ends_at is None or line.is_rate:
        return None
    left_s = min(max((ends_at - now).total_seconds(), 0.0), float(line.window_s))
    elapsed_s = line.window_s - left_s
    share = elapsed_s / line.window_s
    if not past and share < TOO_EARLY:
        return None
    taken = line.used + line.reserved
    so_far = taken / elapsed_s if elapsed_s else 0.0
    typical = sum(past) / len(past) / line.window_s if past else so_far
    a_second = share * so_far + (1 - share) * typical
    by_end = taken + a_second * left_s
    if taken >= line.amount:
        return Forecast(round(by_end), now)
    if by_end <= line.amount:
        return Forecast(round(by_end), None)
    return Forecast(round(by_end), now + timedelta(seconds=(line.amount - taken) / a_second))
