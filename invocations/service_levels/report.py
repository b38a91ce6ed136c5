"""Service level report: the share of the last 24 hours that was as the requirements demand.

TOOLS-27 and its neighbours, each as a share of good ones, so that one family of metrics and one page hold all of them: values that
were held against their schema, preflights that were fast, side effects that stayed in a box, calls with Begin and End, results
whose error has a name. Beside them how long preflights took and calls waited.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Exists, OuterRef, Q

from evidence.kinds import BEGINS, ENDS
from evidence.models import Fact
from evidence.models.facts import CLOCKS_DIFFER_MS
from invocations.decide.preflight import PREFIX
from invocations.direct_runs.pool import DirectSandbox
from invocations.models import Attempt, Invocation, State
from invocations.service_levels.call_health import A_CLOCK_BESIDE, MOST_UNKNOWN, WINDOW, measure_health
from invocations.unfinished_calls.models import build_unfinished_filter
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

FAST_MS = 5.0  # a preflight: TOOLS-27
SAMPLE = 1000  # of the newest calls, whose steps are looked at
QUEUE = "queue.wait"
COUNTED = 10_000  # of the newest calls, that the other levels are of: a busy hub has millions in a day
READ_AGAIN_S = (
    60.0  # a scrape asks for each level of the family, and every process is scraped; a day does not change in a minute
)

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
        """A word of :mod:`kernel.components.labels`."""
        return ("level_met" if self.is_met else "level_missed") if self.all else "level_idle"


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Milliseconds, of the newest calls of the window; None when there were none."""

    p50_ms: float | None
    p95_ms: float | None

    @classmethod
    def of(cls, found: Iterable[float]) -> LatencyPercentiles:
        ordered = sorted(found)
        return cls(*(_quantile(ordered, share) if ordered else None for share in (0.5, 0.95)))


@dataclass(frozen=True, slots=True)
class ServiceLevelReport:
    levels: list[ServiceLevel]
    preflight: LatencyPercentiles
    queue: LatencyPercentiles
    waiting: int  # calls that are queued now
    running: int
    open: int  # calls that have begun and not ended: also those that wait for a person


def _quantile(ordered: list[float], share: float) -> float:
    """The nearest rank."""
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def measure_preflight_ms(steps: list[dict[str, Any]]) -> float | None:
    """From the first step of the last preflight to its last; None for a call that was written before there was one.

    A call that waited for a person has two, and the time between them is the person's.
    """
    groups = [list(group) for ours, group in groupby(steps, key=lambda step: step["name"].startswith(PREFIX)) if ours]
    if not groups:
        return None
    found = groups[-1]
    names = [step["name"] for step in found]
    found = found[len(names) - 1 - names[::-1].index(names[0]) :]  # the second may follow the first at once
    return float(max(step["end_ms"] for step in found) - min(step["begin_ms"] for step in found))


def measure_queued_ms(steps: list[dict[str, Any]]) -> float | None:
    found = [step["end_ms"] - step["begin_ms"] for step in steps if step["name"] == QUEUE]
    return float(found[-1]) if found else None


def _recent(calls: QuerySet[Invocation], since: datetime) -> QuerySet[Invocation]:
    """Found by the primary key, which says when it was made; no index has the time itself."""
    return calls.filter(pk__gte=lowest_id(since - A_CLOCK_BESIDE), created_at__gte=since).order_by("-pk")


def _boxed(newest: QuerySet[Invocation]) -> ServiceLevel:
    """Runs of versions with a side effect, as far as they came to a sandbox of any kind."""
    runs = Attempt.objects.filter(invocation__in=newest.values("pk")).exclude(box="")
    effective = runs.exclude(invocation__version__side_effect="None")
    # In one statement: runs begin meanwhile.
    counted = effective.aggregate(good=Count("pk", filter=~Q(image=DirectSandbox.image)), all=Count("pk"))
    return ServiceLevel("boxed_side_effects", counted["good"], counted["all"])


def _paired(newest: QuerySet[Invocation], since: datetime) -> ServiceLevel:
    """Calls that have ended, with both facts."""
    ended = Invocation.objects.filter(pk__in=newest.values("pk"), finished_at__isnull=False)
    # Each call would be looked for in every month there is.
    oldest = lowest_id(since - A_CLOCK_BESIDE - timedelta(milliseconds=CLOCKS_DIFFER_MS))
    facts = Fact.objects.filter(invocation_id=OuterRef("pk"), id__gte=oldest)
    lacking = ended.filter(~Exists(facts.filter(kind__in=BEGINS)) | ~Exists(facts.filter(kind__in=ENDS))).count()
    total = ended.count()
    return ServiceLevel("paired_facts", total - lacking, total)


def build_service_level_report(calls: QuerySet[Invocation], now: datetime) -> ServiceLevelReport:
    """Of the newest of these calls; unknown errors also of answers in their time that never became a call."""
    since = now - WINDOW
    recent = _recent(calls, since)
    newest = recent[:COUNTED]
    oldest = recent.values_list("created_at", flat=True)[COUNTED - 1 : COUNTED].first()
    health = measure_health(Invocation.objects.filter(pk__in=newest.values("pk")), now, since=oldest)
    steps = list(recent.values_list("steps", flat=True)[:SAMPLE])
    preflights = [ms for each in steps if (ms := measure_preflight_ms(each)) is not None]
    queues = [ms for each in steps if (ms := measure_queued_ms(each)) is not None]
    values, unchecked = health.runs + health.values, health.unchecked
    levels = [
        ServiceLevel("schema_validation", values - unchecked, values),
        ServiceLevel("fast_preflight", sum(ms <= FAST_MS for ms in preflights), len(preflights)),
        _boxed(newest),
        _paired(newest, since),
        ServiceLevel("known_results", health.results - health.unknown, health.results),
    ]
    now_open = calls.filter(build_unfinished_filter())
    return ServiceLevelReport(
        levels=levels,
        preflight=LatencyPercentiles.of(preflights),
        queue=LatencyPercentiles.of(queues),
        waiting=now_open.filter(state=State.QUEUED).count(),
        running=now_open.filter(state=State.RUNNING).count(),
        open=now_open.count(),
    )


class _ReportCache:
    """The report of the whole hub (its reader sees all tenants), read anew when it is older than a scrape takes."""

    def __init__(self) -> None:
        self._report: ServiceLevelReport | None = None
        self._until = 0.0

    def report(self) -> ServiceLevelReport:
        if self._report is None or time.monotonic() >= self._until:
            self._report = build_service_level_report(Invocation.objects.all(), datetime.now(UTC))
            self._until = time.monotonic() + READ_AGAIN_S
        return self._report

    def forget(self) -> None:
        self._report = None


kept = _ReportCache()
