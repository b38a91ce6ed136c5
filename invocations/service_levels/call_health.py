"""Call health: how well calls have gone lately.

Which errors callers got, whether what schemas promise was looked at each time (TOOLS-27), and whether too much of what they
got was an error that the hub does not know by name (TOOLS-24).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Q
from opentelemetry.metrics import CallbackOptions, Observation

from invocations.models import Invocation, State
from invocations.service_levels.unmapped_errors import answers_since
from kernel import names
from kernel.database.connections import release_connection
from kernel.ids import lowest_id
from kernel.observability import telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

WINDOW = timedelta(hours=24)
MOST_UNKNOWN = 0.001  # of all results: TOOLS-24
UNKNOWN = "UNKNOWN."
A_CLOCK_BESIDE = timedelta(minutes=5)  # by which the host that made an id may be behind the one that asks


@dataclass(frozen=True, slots=True)
class CallHealth:
    """Of one window."""

    results: int  # calls that have ended, and answers to requests that never became one
    unknown: int  # of those: without a name for what went wrong
    runs: int  # calls whose tool was started
    inputs_checked: int  # of those
    values: int  # calls that gave one
    outputs_checked: int  # of those

    @property
    def unknown_share(self) -> float:
        return self.unknown / self.results if self.results else 0.0

    @property
    def is_alarming(self) -> bool:
        return self.unknown_share > MOST_UNKNOWN

    @property
    def unchecked(self) -> int:
        """Values that no schema was asked about. There should be none."""
        return self.runs - self.inputs_checked + self.values - self.outputs_checked


def measure_health(
    calls: QuerySet[Invocation], now: datetime, *, since: datetime | None = None, newest: int | None = None
) -> CallHealth:
    """Of these calls, and of the answers of the whole hub that something unmapped became in their time.

    ``since``: where that is not the whole window. ``newest``: of how many of them at most.
    """
    since = since or now - WINDOW
    rows = calls.filter(pk__gte=lowest_id(since - A_CLOCK_BESIDE), created_at__gte=since)
    found = (rows if newest is None else rows.order_by("-pk")[:newest]).aggregate(
        ended=Count("pk", filter=Q(finished_at__isnull=False)),
        unknown=Count("pk", filter=Q(reason__startswith=UNKNOWN)),
        runs=Count("pk", filter=Q(attempt__gt=0)),
        inputs_checked=Count("pk", filter=Q(attempt__gt=0, input_valid=True)),
        values=Count("pk", filter=Q(state=State.SUCCEEDED)),
        outputs_checked=Count("pk", filter=Q(state=State.SUCCEEDED, output_valid__isnull=False)),
    )
    answers = answers_since(since, now)
    return CallHealth(results=found.pop("ended") + answers, unknown=found.pop("unknown") + answers, **found)


# Metrics: asked for by whoever exports them, of the whole hub.


def _now() -> CallHealth:
    try:
        return measure_health(Invocation.objects.all(), datetime.now(UTC))
    finally:
        release_connection()


def _unknown_share(_: CallbackOptions) -> Iterable[Observation]:
    return [Observation(_now().unknown_share)]


def _alarms(_: CallbackOptions) -> Iterable[Observation]:
    health = _now()
    return [
        Observation(int(health.is_alarming), {"alarm": "unknown_results"}),
        Observation(int(health.unchecked > 0), {"alarm": "unchecked_values"}),
    ]


def make_instruments() -> None:
    meter = telemetry.get_meter()
    meter.create_observable_gauge(
        names.METRIC_UNKNOWN_SHARE, [_unknown_share], description="Results of 24 h without a name for what went wrong"
    )
    meter.create_observable_gauge(names.METRIC_ALARMS, [_alarms], description="1 while something is not as it must be")
