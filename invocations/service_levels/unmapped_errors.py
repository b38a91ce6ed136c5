"""Unmapped errors: what has gone wrong that nobody had thought of, and how often.

Each is counted by the hour, its place and its class, for people on the overview; the stack itself is in the log.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Max, Q, Sum
from django.dispatch import receiver

from invocations.metrics.call_metrics import count_unmapped
from invocations.models import Unmapped
from kernel.database.connections import release_connection
from kernel.database.tenancy import hub_wide
from kernel.observability.unmapped_errors import unmapped

log = logging.getLogger("toolhub.unmapped")
ANSWERS = "problems"  # the place where an answer was made of it: kernel/http/exception_handlers.py
FORGOTTEN_AFTER = timedelta(days=30)


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def note_unmapped(*, place: str, error: str, now: datetime) -> None:
    """One more. With the first of its sort in an hour, what is long past is forgotten."""
    sort = {"hour": _hour(now), "place": place[:64], "error": error[:100]}
    with hub_wide():
        while not Unmapped.objects.filter(**sort).update(count=F("count") + 1, last_at=now):
            try:
                with transaction.atomic():
                    Unmapped.objects.create(**sort, last_at=now)
            except IntegrityError:
                continue  # another one was first
            Unmapped.objects.filter(hour__lt=now - FORGOTTEN_AFTER).delete()


@dataclass(frozen=True, slots=True)
class UnmappedCount:
    place: str
    error: str
    times: int
    latest: datetime


def list_unmapped_since(since: datetime) -> list[UnmappedCount]:
    """By place and class, the latest first; whole hours."""
    rows = Unmapped.objects.filter(hour__gte=_hour(since)).values_list("place", "error")
    return [UnmappedCount(*row) for row in rows.annotate(times=Sum("count"), latest=Max("last_at")).order_by("-latest")]


def answers_since(since: datetime, now: datetime) -> int:
    """Answers that something unmapped became. They are counted by the hour, so of the first as many as its time since then says."""
    hour = _hour(since)
    ends = min(hour + timedelta(hours=1), now)
    rows = Unmapped.objects.filter(place=ANSWERS, hour__gte=hour)
    found = rows.aggregate(first=Sum("count", filter=Q(hour=hour)), later=Sum("count", filter=Q(hour__gt=hour)))
    first, later = found["first"] or 0, found["later"] or 0
    return later + (-(-first * (ends - since) // (ends - hour)) if hour < since < ends else first)


@receiver(unmapped)
def count_in_log(record: logging.LogRecord, **_: object) -> None:
    """Of a database that does not answer only the metric knows."""
    assert record.exc_info is not None
    assert record.exc_info[0] is not None
    place, error = record.name.rpartition(".")[2], record.exc_info[0].__name__
    was_open = connection.connection is not None
    count_unmapped(place, error)
    try:
        note_unmapped(place=place, error=error, now=datetime.now(UTC))
    except Exception as failure:  # noqa: BLE001  who writes to a log must never fail for it
        log.warning("An error in %s was not counted: %s", place, failure)
    finally:
        if not was_open:
            release_connection()  # of a thread that has none, nobody else would close it
