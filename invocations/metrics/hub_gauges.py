"""Hub gauges: what the whole hub has to do, and how its evidence is.

Read from the database by whoever is asked for metrics, so they are right from any process, and the same from each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db.models import Count, F, Max, Min, OuterRef, Subquery, Sum
from opentelemetry.metrics import Observation

from evidence.integrity.alarms import find_stuck
from evidence.models import (
    GLOBAL_LOG,
    Anchor,
    EventSink,
    Log,
    Pending,
    SinkState,
    Verification,
)
from invocations.models import Invocation, State, WorkClass
from invocations.service_levels import report
from invocations.unfinished_calls.models import UnfinishedCall, build_unfinished_filter
from kernel import names
from kernel.database.connections import database_time, release_connection
from kernel.database.tenancy import hub_wide
from kernel.observability import telemetry
from kernel.singleton import Once
from registry.model_providers.circuits import read_state
from registry.models import ModelCircuit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from opentelemetry.metrics import CallbackOptions

    Reading = Callable[[datetime], list[Observation]]


def _pending(now: datetime) -> list[Observation]:
    del now
    return [Observation(Pending.objects.count())]


def _pending_age(now: datetime) -> list[Observation]:
    first = Pending.objects.order_by("fact_id").values_list("fact_id", flat=True).first()
    return [
        Observation(max(0.0, now.timestamp() - (first.int >> 80) / 1000) if first else 0.0)
    ]  # a UUIDv7 has its time


def _sealed(now: datetime) -> list[Observation]:
    del now
    return [Observation(Log.objects.exclude(pk=GLOBAL_LOG).aggregate(all=Sum("size"))["all"] or 0)]


def _log_age(now: datetime) -> list[Observation]:
    """The oldest among the newest checkpoints: each is signed anew every few minutes."""
    oldest = Log.objects.filter(size__gt=0).aggregate(oldest=Min("signed_at"))["oldest"]
    return [Observation((now - oldest).total_seconds() if oldest else 0.0)]


def _verification_failures(now: datetime) -> list[Observation]:
    """Logs with findings that no later look at the whole log has closed, and logs that the verifier cannot read."""
    del now
    bad = set(Verification.objects.filter(found__gt=0, closed_by=None).values_list("tenant_id", flat=True))
    return [Observation(len(bad | set(find_stuck().values_list("tenant_id", flat=True))))]


def _queued(now: datetime) -> list[Observation]:
    """Of each class, also where none waits: what is not there cannot be told from what is not measured."""
    del now
    rows = UnfinishedCall.objects.filter(state=State.QUEUED).values_list("work_class").annotate(calls=Count("pk"))
    found = dict.fromkeys(WorkClass.values, 0) | dict(rows)
    return [Observation(calls, {"work_class": name}) for name, calls in found.items()]


def _open(now: datetime) -> list[Observation]:
    """Begins without their End yet."""
    del now
    rows = UnfinishedCall.objects.values_list("state").annotate(calls=Count("pk"))
    found = dict.fromkeys((str(State.HELD), str(State.QUEUED), str(State.RUNNING)), 0) | dict(rows)
    return [Observation(calls, {"state": name}) for name, calls in found.items()]


def _levels(now: datetime) -> list[Observation]:
    del now
    return [Observation(level.share, {"level": level.name}) for level in report.kept.report().levels]


def _objectives(now: datetime) -> list[Observation]:
    del now
    return [Observation(least, {"level": name}) for name, (_, least) in report.OBJECTIVES.items()]


def _queue_age(now: datetime) -> list[Observation]:
    rows = (
        Invocation.objects.filter(build_unfinished_filter(state=State.QUEUED))
        .values_list("work_class")
        .annotate(first=Min("created_at"))
        .order_by()
    )
    found = dict.fromkeys(WorkClass.values, 0.0) | {name: (now - first).total_seconds() for name, first in rows}
    return [Observation(age, {"work_class": name}) for name, age in found.items()]


def _leases(now: datetime) -> list[Observation]:
    running = UnfinishedCall.objects.filter(state=State.RUNNING)
    overdue = running.filter(overdue_at__lt=now).count()
    return [
        Observation(running.count() - overdue, {"state": "held"}),
        Observation(overdue, {"state": "overdue"}),
    ]


def _sink_lag(now: datetime) -> list[Observation]:
    """Leaves that the sink which is furthest behind has not got, by tenant."""
    del now
    size = Subquery(Log.objects.filter(pk=OuterRef("tenant_id")).values("size"))
    rows = EventSink.objects.exclude(state=SinkState.ENDED).annotate(behind=size - F("cursor"))
    lags = rows.values("tenant_id").annotate(most=Max("behind")).order_by()
    return [Observation(max(0, row["most"] or 0), {names.ATTR_TENANT: str(row["tenant_id"])}) for row in lags]


def _anchor_age(now: datetime) -> list[Observation]:
    return [
        Observation((now - row.anchored_at).total_seconds() if row.anchored_at else 1e9, {"anchor": row.name})
        for row in Anchor.objects.all()
    ]


def _refused(now: datetime) -> list[Observation]:
    del now
    return [Observation(int(row.refused_at is not None), {"anchor": row.name}) for row in Anchor.objects.all()]


def _circuits(now: datetime) -> list[Observation]:
    """Models that have failed since they last answered; of those that work nothing is said."""
    return [
        Observation(
            1,
            {
                names.ATTR_TENANT: str(row.tenant_id),
                names.ATTR_PROVIDER: row.provider.name,
                names.ATTR_REQUEST_MODEL: row.model,
                "state": str(read_state(row, now)),
            },
        )
        for row in ModelCircuit.objects.select_related("provider")
    ]


GAUGES: dict[str, tuple[Reading, str, str]] = {
    names.METRIC_PENDING: (_pending, "", "Facts that no log holds yet"),
    names.METRIC_PENDING_AGE: (_pending_age, "s", "How long the oldest of them has waited"),
    names.METRIC_SEALED: (_sealed, "", "Leaves of all tenants' logs"),
    names.METRIC_LOG_AGE: (_log_age, "s", "Since the log that was signed longest ago was signed"),
    names.METRIC_BAD_LOGS: (
        _verification_failures,
        "",
        "Logs that do not verify, those that all tenants share included",
    ),
    names.METRIC_QUEUED: (_queued, "", "Calls that wait for a worker, by class of work"),
    names.METRIC_QUEUE_AGE: (_queue_age, "s", "How long the oldest of them has waited, by class of work"),
    names.METRIC_LEASES: (_leases, "", "Calls that run, by whether their worker still says so"),
    names.METRIC_OPEN: (_open, "", "Calls that have begun and not ended, by state"),
    names.METRIC_LEVEL: (_levels, "", "Share of 24 h that was as demanded, by service level"),
    names.METRIC_OBJECTIVE: (_objectives, "", "The least share, by service level"),
    names.METRIC_CIRCUITS: (_circuits, "", "Models whose providers fail, by whether they are asked"),
    names.METRIC_SINK_LAG: (_sink_lag, "", "Leaves that the sink which is furthest behind has not got"),
    names.METRIC_ANCHOR_AGE: (_anchor_age, "s", "Since a witness, file or repository got a checkpoint"),
    names.METRIC_ANCHOR_REFUSED: (_refused, "", "1 while a witness has seen another history"),
}


def _observed(read: Reading, _: CallbackOptions) -> Iterable[Observation]:
    try:
        with hub_wide():
            return read(database_time())
    finally:
        release_connection()


@Once
def make_instruments() -> bool:
    """Once in each process that is asked for metrics."""
    meter = telemetry.get_meter()
    for name, (read, unit, description) in GAUGES.items():
        meter.create_observable_gauge(name, [partial(_observed, read)], unit=unit, description=description)
    return True
