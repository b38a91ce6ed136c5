"""Learned counts: how many tokens a model is likely to report for what the hub has counted.

The hub counts bytes; how many of them a token has is another number for each model and each sort of text. What was learned of earlier
calls makes estimates closer. What is reserved stays the most: it follows the call that had the most, with a margin, and never the
average.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.model_meters.meter_book import LEAST, MeteredModel
from invocations.model_meters.models import MeterFigure, ModelMeter
from llm.meter_windows import MIN_CALLS, MeterWindow

if TYPE_CHECKING:
    from uuid import UUID

KEPT_S = 60.0  # a process looks again: what is learned changes slowly
MAX_KEPT = 1024
LOWERED_AFTER = 1000  # calls, before less is reserved than bytes say
MARGIN = 110  # per cent
# What a provider reports cannot make the hub reserve more than this: 12 tokens for three bytes, and so many that nobody sent.
MOST_TIMES, MOST_BESIDE = 12, 16_384


@dataclass(frozen=True, slots=True)
class LearnedCount:
    """Of one figure of one model. ``window``: the sums over what was learned."""

    window: MeterWindow = field(default_factory=MeterWindow)
    most_per_mille: int = 0
    most_excess: int = 0

    def estimate(self, counted: int) -> int:
        """What is likely to be reported."""
        if self.window.calls < MIN_CALLS or not self.window.counted:
            return counted
        return -(-counted * self.window.reported // self.window.counted)

    def bound(self, counted: int) -> int:
        """What will hardly be exceeded."""
        if self.most_excess > 0:
            beside = -(-self.most_excess * MARGIN // 100)
            return min(counted + beside, counted * MOST_TIMES + MOST_BESIDE)
        if self.window.calls < LOWERED_AFTER or counted < LEAST:
            return counted
        return min(counted, -(-counted * self.most_per_mille * MARGIN // 100_000))


@dataclass(frozen=True, slots=True)
class LearnedCounts:
    input: LearnedCount = LearnedCount()
    output: LearnedCount = LearnedCount()


UNKNOWN = LearnedCounts()
_kept: dict[MeteredModel, tuple[float, LearnedCounts]] = {}


def find_learned_counts(tenant_id: UUID, provider: str, model: str) -> LearnedCounts:
    """As this process has read them within the last minute."""
    key, now = MeteredModel(tenant_id, provider, model), time.monotonic()
    kept = _kept.get(key)
    if kept is not None and now < kept[0]:
        return kept[1]
    rows = ModelMeter.objects.filter(tenant_id=tenant_id, provider=provider, model=model)
    found = {row.figure: LearnedCount(MeterWindow(*row.learned), row.most_per_mille, row.most_excess) for row in rows}
    counts = LearnedCounts(found.get(MeterFigure.INPUT, LearnedCount()), found.get(MeterFigure.OUTPUT, LearnedCount()))
    if len(_kept) >= MAX_KEPT:
        _kept.clear()
    _kept[key] = (now + KEPT_S, counts)
    return counts


def forget_learned_counts() -> None:
    """Start as a new process does."""
    _kept.clear()
