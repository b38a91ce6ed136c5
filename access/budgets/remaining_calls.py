"""Remaining calls: how many more a caller may make now, by each budget that counts calls, for the headers of an answer.

Read from what the call itself was decided by, so it costs nothing; only of a rate, which no row counts, the counter is asked.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from access.budgets.rate_limits import RateLimit, peek_rate
from access.models import Dimension
from kernel.http.rate_limit_fields import RateLimitState
from kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Iterable


def list_remaining_calls(lines: Iterable[dict[str, Any]], *, took: bool) -> list[RateLimitState]:
    """``lines``: the budgets as they were before the call (:meth:`~access.budgets.lines.BudgetLine.to_json`). ``took``: it was
    accepted, and has taken its share of them.
    """
    states = (_state_of(line, took=took) for line in lines)
    return [state for state in states if state is not None]


def _state_of(line: dict[str, Any], *, took: bool) -> RateLimitState | None:
    name, limit, window_s = line["budget"], line["limit"], line["window_s"]
    if not window_s:
        return None
    if line["dimension"] == Dimension.RATE:
        left = peek_rate(decode("bud", name), RateLimit.of(limit, window_s))
        return RateLimitState(name, limit, window_s, left.remaining, math.ceil(left.reset_after))
    if line["dimension"] != Dimension.CALLS or not line["resets_at"]:
        return None
    left_s = (datetime.fromisoformat(line["resets_at"]) - datetime.now(UTC)).total_seconds()
    return RateLimitState(name, limit, window_s, line["remaining"] - line["takes"] * took, math.ceil(left_s))
