"""Service levels: what share of the last 24 hours was as the requirements demand?

TOOLS-27 and its neighbours, each as a share of good ones, so that one family of metrics and one page hold all of them: values that
were held against their schema, preflights that were fast, side effects that stayed in a box, calls with Begin and End, results
whose error has a name. Beside them how long preflights took and calls waited.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef

from evidence.kinds import BEGINS, ENDS
from evidence.models import Fact
from invocations.direct.pool import DirectPool
from invocations.health import MOST_UNKNOWN, WINDOW, health_of
from invocations.models import Attempt, Invocation, State
from invocations.preflight import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

FAST_MS = 5.0  # a preflight: TOOLS-27
SAMPLE = 1000  # of the newest calls, whose steps are looked at
QUEUE = "queue.wait"
READ_AGAIN_S = 15.0  # a scrape asks for each level of the family; all come from one look

# By name: the requirement, and the least share.
OBJECTIVES: dict[str, tuple[str, float]] = {
    "schema_validation": ("TOOLS-27", 1.0),
    "fast_preflight": ("TOOLS-27", 0.95),
    "boxed_side_effects": ("TOOLS-17", 1.0),
    "paired_facts": ("TOOLS-18", 1.0),
    "known_results": ("TOOLS-24", 1.0 - MOST_UNKNOWN),
}


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """``good`` of ``all``, and the share that there must be at least. With nothing to judge a level is met."""

    name: str
    good: int
    all: int

    @property
    def requirement(self) -> str:
        return OBJECTIVES[self.name][0]

    @property
    def objective(self) -> float:
        return OBJECTIVES[self.name][1]

    @property
    def share(self) -> float:
        return self.good / self.all if self.all else 1.0

    @property
    def is_met(self) -> bool:
        return self.share >= self.objective

    @property
    def state(self) -> str:
        """A word of :mod:`toolhub.kernel.wording`."""
        return ("level_met" if self.is_met else "level_missed") if self.all else "level_idle"


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds, of the newest calls of the window; None when there were none."""

    p50_ms: float | None
    p95_ms: float | None

    @classmethod
    def of(cls, found: Iterable[float]) -> Times:
        ordered = sorted(found)
        return cls(*(_quantile(ordered, share) if ordered else None for share in (0.5, 0.95)))


@dataclass(frozen=True, slots=True)
class Report:
    levels: list[ServiceLevel]
    preflight: Times
    queue: Times
    waiting: int  # calls that are queued now
    running: int
    open: int  # calls that have begun and not ended: also those that wait for a person


def _quantile(ordered: list[float], share: float) -> float:
    """The nearest rank."""
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def preflight_ms_of(steps: list[dict[str, Any]]) -> float | None:
    """From the first step of the preflight to its last; None for a call that was written before there was one."""
    found = [step for step in steps if step["name"].startswith(PREFIX)]
    if not found:
        return None
    return float(max(step["end_ms"] for step in found) - min(step["begin_ms"] for step in found))


def queued_ms_of(steps: list[dict[str, Any]]) -> float | None:
    found = [step["end_ms"] - step["begin_ms"] for step in steps if step["name"] == QUEUE]
    return float(found[-1]) if found else None


def _boxed(calls: QuerySet[Invocation], since: datetime) -> ServiceLevel:
    """Runs of versions with a side effect, as far as they came to a sandbox of any kind."""
    runs = Attempt.objects.filter(invocation__in=calls.filter(created_at__gte=since)).exclude(box="")
    effective = runs.exclude(invocation__version__side_effect="None")
    return ServiceLevel("boxed_side_effects", effective.exclude(image=DirectPool.image).count(), effective.count())


def _paired(calls: QuerySet[Invocation], since: datetime) -> ServiceLevel:
    """Calls that have ended, with both facts."""
    ended = calls.filter(created_at__gte=since, finished_at__isnull=False)
    facts = Fact.objects.filter(invocation_id=OuterRef("pk"))
    lacking = ended.filter(~Exists(facts.filter(kind__in=BEGINS)) | ~Exists(facts.filter(kind__in=ENDS))).count()
    total = ended.count()
    return ServiceLevel("paired_facts", total - lacking, total)


def report_of(calls: QuerySet[Invocation], now: datetime) -> Report:
    """Of these calls; unknown errors also of answers that never became a call."""
    since, health = now - WINDOW, health_of(calls, now)
    steps = list(calls.filter(created_at__gte=since).order_by("-pk").values_list("steps", flat=True)[:SAMPLE])
    preflights = [ms for each in steps if (ms := preflight_ms_of(each)) is not None]
    queues = [ms for each in steps if (ms := queued_ms_of(each)) is not None]
    values, unchecked = health.runs + health.values, health.unchecked
    levels = [
        ServiceLevel("schema_validation", values - unchecked, values),
        ServiceLevel("fast_preflight", sum(ms <= FAST_MS for ms in preflights), len(preflights)),
        _boxed(calls, since),
        _paired(calls, since),
        ServiceLevel("known_results", health.results - health.unknown, health.results),
    ]
    now_open = calls.filter(finished_at=None)
    return Report(
        levels=levels,
        preflight=Times.of(preflights),
        queue=Times.of(queues),
        waiting=now_open.filter(state=State.QUEUED).count(),
        running=now_open.filter(state=State.RUNNING).count(),
        open=now_open.count(),
    )


class _Kept:
    """The report of the whole hub (its reader sees all tenants), read anew when it is older than a scrape takes."""

    def __init__(self) -> None:
        self._report: Report | None = None
        self._until = 0.0

    def report(self) -> Report:
        if self._report is None or time.monotonic() >= self._until:
            self._report = report_of(Invocation.objects.all(), datetime.now(UTC))
            self._until = time.monotonic() + READ_AGAIN_S
        return self._report

    def forget(self) -> None:
        self._report = None


kept = _Kept()
