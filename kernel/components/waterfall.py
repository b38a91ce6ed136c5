"""Waterfall: where on a time axis each step of a call belongs.

The scale is piecewise linear: a long wait in which nothing else happens is folded into a slot of fixed width, so that
the work around it stays readable. Positions are per cent of the width, drawn as SVG attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLD_WIDTH = 14.0
MIN_WIDTH = 0.45
"""A bar never gets thinner than this, or nobody would see it."""
FOLD_ABOVE_MS = 1000.0
FOLD_ABOVE_SHARE = 0.3
"""A wait is folded when it is longer than a second and takes more than this share of the whole."""
SHORTEST_MS = 1e-9
"""Less than this is no time at all: dividing by it would overflow."""
ROUND_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened, in milliseconds since the call was received. A waiting step may be folded.

    ``kind`` is the colour: control, person, tool, upstream or pii. ``status`` is a badge word; empty is normal.
    """

    name: str
    start_ms: float
    end_ms: float
    kind: str = "control"
    status: str = ""
    note: str = ""
    depth: int = 0
    waiting: bool = False

    @property
    def duration_ms(self) -> float:
        return self.end_ms - self.start_ms

    @property
    def is_instant(self) -> bool:
        """It would be read as 0 ms, and there is nothing to say of it."""
        return self.duration_ms < 0.5 and self.status in ("", "skipped") and not self.waiting


@dataclass(frozen=True, slots=True)
class Bar:
    step: Step
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Band:
    """A folded wait."""

    x: float
    width: float
    duration_ms: float

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    ms: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    bars: tuple[Bar, ...]
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]
    total_ms: float
    instant: int = 0  # steps that took no time to speak of, and are left out

    @property
    def folded_ms(self) -> float:
        return sum(band.duration_ms for band in self.bands)


def lay_out_steps(steps: Sequence[Step], *, fold: bool = True, instant: bool = True) -> Waterfall:
    """Put the steps on one axis; ``fold=False`` gives the real scale. Without ``instant``, those that took no time and went well are
    only counted."""
    total = max((step.end_ms for step in steps), default=0.0)
    shown = [step for step in steps if instant or not step.is_instant]
    folds = find_waits(steps, total) if fold else []
    place = build_scale(total, folds)
    bars = []
    for step in shown:
        start = place(step.start_ms)
        width = max(place(step.end_ms) - start, MIN_WIDTH)
        bars.append(Bar(step, round(min(start, 100 - width), 2), round(width, 2)))
    bands = tuple(Band(round(place(a), 2), round(place(b) - place(a), 2), b - a) for a, b in folds)
    return Waterfall(tuple(bars), bands, tuple(_ticks(total, folds, place)), total, len(steps) - len(shown))


def find_waits(steps: Sequence[Step], total: float) -> list[tuple[float, float]]:
    """The stretches in which no step was at work, longest gaps only."""
    longest = max(FOLD_ABOVE_MS, total * FOLD_ABOVE_SHARE)
    waits, quiet_since = [], 0.0
    for start, end in sorted((step.start_ms, step.end_ms) for step in steps if not step.waiting):
        if start - quiet_since > longest:
            waits.append((quiet_since, start))
        quiet_since = max(quiet_since, end)
    if total - quiet_since > longest:
        waits.append((quiet_since, total))
    return waits


def build_scale(
    total: float, folds: Sequence[tuple[float, float]], *, fold_width: float = FOLD_WIDTH
) -> Callable[[float], float]:
    """The function from milliseconds to per cent."""
    working = total - sum(end - start for start, end in folds)
    per_ms = (100.0 - fold_width * len(folds)) / working if working > SHORTEST_MS else 0.0

    def place(ms: float) -> float:
        position, done = 0.0, 0.0
        for start, end in folds:
            if ms <= start:
                break
            position += (start - done) * per_ms
            if ms <= end:
                return position + fold_width * (ms - start) / (end - start)
            position, done = position + fold_width, end
        return position + (ms - done) * per_ms

    return place


def _ticks(total: float, folds: Sequence[tuple[float, float]], place: Callable[[float], float]) -> list[Tick]:
    """At most five round moments that are not inside a fold, and not crowded."""
    working = total - sum(end - start for start, end in folds)
    if working <= SHORTEST_MS:
        return []
    step = _round_step(working / 4)
    ticks: list[Tick] = []
    moment = step
    while moment < total:
        inside = next(((start, end) for start, end in folds if start < moment < end), None)
        if inside:
            moment = max(moment + step, inside[1] - inside[1] % step + step)
            continue
        x = place(moment)
        if (
            x < 94
            and (not ticks or x - ticks[-1].x > 8)
            and all(abs(x - place(edge)) > 4 for fold in folds for edge in fold)
        ):
            ticks.append(Tick(round(x, 2), moment))
        moment += step
    return ticks


def _round_step(about: float) -> float:
    """The 1, 2 or 5 times a power of ten that is nearest above ``about``."""
    power = 1.0
    while power * 10 <= about:
        power *= 10
    while power > about:
        power /= 10
    return next((power * factor for factor in ROUND_STEPS if power * factor >= about), power * 10)
