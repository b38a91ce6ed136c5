"""Meter book: what the calls of a process have added to meters, until it is written down with that of the others.

A few sums for each model. They are written with one of its calls, after some calls or some seconds, so that most Ends cost no
statement of their own; what a process has not written when it ends is lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from llm.meter_windows import MeterWindow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

CALLS, SECONDS = 20, 10.0  # after which sums are written
MAX_MODELS = 1024
LEAST = 64  # tokens, of which a part says something


class MeteredModel(NamedTuple):
    tenant_id: UUID
    provider: str
    model: str


@dataclass(slots=True)
class MeterSums:
    """Of one figure: the window, and the most that one call had, as a part of what was counted and beyond it."""

    window: MeterWindow = field(default_factory=MeterWindow)
    most_per_mille: int = 0
    most_excess: int = 0

    def add(self, reported: int, counted: int) -> None:
        self.window = self.window.add(reported, counted)
        self.most_excess = max(self.most_excess, reported - counted)
        if counted >= LEAST:
            self.most_per_mille = max(self.most_per_mille, -(-reported * 1000 // counted))


@dataclass(slots=True)
class _Page:
    begun_at: float
    calls: int = 0
    figures: dict[str, MeterSums] = field(default_factory=dict)


class MeterBook:
    """Of one process."""

    def __init__(self) -> None:
        self._pages: dict[MeteredModel, _Page] = {}
        self._lock = Lock()

    def add(self, model: MeteredModel, figures: Mapping[str, tuple[int, int]]) -> dict[str, MeterSums] | None:
        """One call: what was reported and what was counted, by figure. Returns what is to be written now, and forgets it."""
        now = time.monotonic()
        with self._lock:
            page = self._pages.setdefault(model, _Page(now))
            page.calls += 1
            for figure, (reported, counted) in figures.items():
                page.figures.setdefault(figure, MeterSums()).add(reported, counted)
            if page.calls >= CALLS or now - page.begun_at >= SECONDS:
                return self._pages.pop(model).figures
            if len(self._pages) > MAX_MODELS:
                del self._pages[next(iter(self._pages))]  # the one that was begun first
            return None
