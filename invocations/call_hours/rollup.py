"""Rollup of call hours: counts the calls of each hour that is over, for all tenants.

Any number of processes may do it at once: an hour is counted and written in one transaction, and who comes second writes nothing.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Count, Sum
from django.db.models.functions import TruncHour

from invocations.call_hours.models import CallHour
from invocations.models import FINAL, Invocation
from invocations.service_levels.call_health import A_CLOCK_BESIDE
from invocations.unfinished_calls.models import build_unfinished_filter
from kernel.ids import lowest_id
from kernel.loops import repeat_work

if TYPE_CHECKING:
    import threading

    from django.db.models import QuerySet

log = logging.getLogger("toolhub.call_hours")
HOUR = timedelta(hours=1)
KEPT = timedelta(days=31)
EVERY_S = 60.0
LOCK = 0x63616C6C  # of PostgreSQL, beside the number of the hour


def floor_to_hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def select_made_between(rows: QuerySet[Invocation], since: datetime, until: datetime) -> QuerySet[Invocation]:
    """Found by the primary key, which says when a call was made by the clock of whoever made the id."""
    return rows.filter(
        pk__gte=lowest_id(since - A_CLOCK_BESIDE),
        pk__lt=lowest_id(until + A_CLOCK_BESIDE),
        created_at__gte=since,
        created_at__lt=until,
    )


@transaction.atomic
def count_hour(hour: datetime) -> bool:
    """Write what is known of an hour now, in place of what was. False: somebody else is at it."""
    if not _take_hour(hour):
        return False
    found = select_made_between(Invocation.objects.all(), hour, hour + HOUR)
    groups = [
        each
        for by in ("tool", "agent_id")
        for each in found.values("tenant_id", by, "state", "reason").annotate(calls=Count("pk")).order_by()
    ]
    CallHour.objects.filter(hour=hour).delete()
    CallHour.objects.bulk_create([CallHour(hour=hour, **each) for each in groups], batch_size=500)
    return True


def _take_hour(hour: datetime) -> bool:
    """Hold the hour until the transaction ends: of two counts that began at two times the older may not be written last."""
    if connection.vendor != "postgresql":
        return True  # SQLite's transactions take turns anyway
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [LOCK, int(hour.timestamp()) // 3600])
        return bool(cursor.fetchone()[0])


def list_due_hours(now: datetime) -> list[datetime]:
    """Those that are over and not counted, and those of which a call has ended since they were; the oldest first."""
    end = floor_to_hour(now - A_CLOCK_BESIDE)
    last = CallHour.objects.order_by("-hour").values_list("hour", flat=True).first()
    since = max(end - KEPT, last + HOUR if last is not None else end - KEPT)
    due = _list_outdated_hours(end - KEPT, end)
    while since < end:
        made = select_made_between(Invocation.objects.all(), since, end).order_by("pk")
        first = made.values_list("created_at", flat=True).first()
        if first is None:
            break
        due.add(floor_to_hour(first))
        since = floor_to_hour(first) + HOUR
    return sorted(due)


def _list_outdated_hours(since: datetime, until: datetime) -> set[datetime]:
    """Those of which fewer calls are open than when they were counted. A call that is held for days changes nothing meanwhile."""
    counted = CallHour.objects.exclude(state__in=sorted(FINAL)).filter(hour__gte=since, agent=None)
    were = dict(counted.values_list("hour").annotate(n=Sum("calls")).order_by())
    if not were:
        return set()
    rows = select_made_between(Invocation.objects.filter(build_unfinished_filter()), since, until)
    made = rows.annotate(made_in=TruncHour("created_at", tzinfo=UTC)).values_list("made_in").annotate(n=Count("pk"))
    are = dict(made.order_by())
    return {hour for hour, n in were.items() if are.get(hour, 0) < n}


def count_due_hours(now: datetime) -> int:
    done = sum(count_hour(hour) for hour in list_due_hours(now))
    if done:
        CallHour.objects.filter(hour__lt=now - KEPT).delete()
    return done


def run_rollup(stop: threading.Event) -> None:
    """Count until told to stop."""
    repeat_work(
        lambda: {"hours": count_due_hours(datetime.now(UTC))},
        stop,
        every_s=EVERY_S,
        what="A pass of counting hours was not finished",
        log=log,
    )
