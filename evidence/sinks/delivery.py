"""Delivery of events: in order, each at least once.

A loop in any number of keepers. Of a sink that was claimed the ``cursor`` moves when events have arrived. A failure leaves the
cursor where it is, and the sink waits, longer each time, for as long as it takes: a stream without gaps gives nothing up.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db.models import F, OuterRef, Subquery
from django.utils import timezone

from evidence.deliveries.queue import MAX_ERROR, DeliveryQueue, claim_row, run_queue, send_due
from evidence.deliveries.signed_requests import RequestNotTaken
from evidence.deliveries.signing_secrets import load_secrets
from evidence.models import EventSink, Log, SinkChannel, SinkMode, SinkState
from evidence.sinks import files, webhook
from evidence.sinks.cursor import LogGap, next_events
from evidence.sinks.services import note_refusal
from kernel.database.connections import database_time
from kernel.http.outbound import AddressRefused, OutboundFailed
from kernel.principal import Principal
from kernel.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Generator

log = logging.getLogger("toolhub.events")
SERVED_FOR_S = 60.0  # less than a claim: then another process may go on
BATCH = 100
PAUSES = tuple(timedelta(seconds=s) for s in (5, 30, 120, 600, 1800, 3600))  # the last one for ever


class SinkQueue(DeliveryQueue[EventSink]):
    """Sinks that are behind. One that is served has a thread; a tenant has few of them."""

    name = "events"
    log = log
    at_once = 16
    limits = {"tenant_id": 2}

    def list_due(self) -> list[EventSink]:
        """Active sinks that have not got all of their log, and wait for nothing; the one that waits longest first."""
        size = Log.objects.filter(pk=OuterRef("tenant_id")).values("size")
        rows = EventSink.objects.filter(state=SinkState.ACTIVE, next_attempt_at__lte=database_time())
        return list(rows.annotate(log_size=Subquery(size)).filter(log_size__gt=F("cursor")).order_by("next_attempt_at"))

    def claim_due(self, row: EventSink) -> bool:
        return claim_row(EventSink.objects.filter(state=SinkState.ACTIVE), row)

    def serve_row(self, row: EventSink) -> int:
        """Send what comes next until nothing is left, something fails, or it has taken long; returns how many arrived."""
        arrived, pause, error = 0, timedelta(), ""
        try:
            for count in _sending(row):
                arrived += count
        except RequestNotTaken as failed:
            error, pause = str(failed), failed.retry_after or timedelta()
            if failed.is_gone:
                error = "Answered 410: nothing is wanted here any more."
                note_refusal(row, by=Principal.system("events", tenant_id=row.tenant_id))
        except (OutboundFailed, AddressRefused, Problem, LogGap) as failed:
            error = str(failed)
        except OSError as failed:  # of the disk; where it is concerns nobody of the tenant
            error = f"The file could not be written: {failed.strerror or type(failed).__name__}."
        except Exception as failed:  # what nobody thought of is a failed try like others
            log.exception("%s could not be served", row.wire_id)
            error = type(failed).__name__
        _settle(row, error=error, pause=pause)
        return arrived


def _sending(sink: EventSink) -> Generator[int]:
    if sink.channel == SinkChannel.FILE:
        yield from _to_files(sink)
    else:
        yield from _to_server(sink)


def _to_files(sink: EventSink) -> Generator[int]:
    until = time.monotonic() + SERVED_FOR_S
    with files.open_writer(sink) as writer:
        start = max(sink.cursor, writer.next)
        if start > sink.cursor and not _advance(sink, start, 0):  # what a writer that died has not said
            return
        while time.monotonic() < until:
            found = next_events(sink, start=start, most=BATCH)
            if found.cursor == start:
                break
            writer.append(found.events)
            if not _advance(sink, found.cursor, len(found.events)):
                break
            start = found.cursor
            yield len(found.events)


def _to_server(sink: EventSink) -> Generator[int]:
    """After a failure one event goes first, also where many go at once: it may be their size that a server does not take."""
    until, secrets = time.monotonic() + SERVED_FOR_S, load_secrets(sink.secrets, tenant_id=sink.tenant_id)
    while time.monotonic() < until:
        start = sink.cursor
        found = next_events(sink, start=start, most=1 if sink.attempts else BATCH)
        if found.cursor == start:
            break
        step = len(found.events) if sink.mode == SinkMode.BATCHED else 1
        for at in range(0, len(found.events), step or 1):
            if time.monotonic() >= until:
                return
            part = found.events[at : at + step]
            webhook.post_events(sink, secrets, part)
            if not _advance(sink, part[-1][0] + 1, len(part)):
                return
            yield len(part)
        if sink.cursor < found.cursor and not _advance(sink, found.cursor, 0):
            return


def _advance(sink: EventSink, cursor: int, count: int) -> bool:
    """Remember what has arrived. False when the sink was paused, ended or taken over meanwhile: then send no more."""
    sink.attempts = 0
    changes = {"cursor": cursor, "attempts": 0, "last_error": "", "sent": F("sent") + count}
    if count:
        changes["sent_at"] = timezone.now()
    mine = EventSink.objects.filter(pk=sink.pk, cursor=sink.cursor, next_attempt_at=sink.next_attempt_at)
    won = mine.update(**changes)
    sink.cursor = cursor
    return bool(won) and EventSink.objects.filter(pk=sink.pk, state=SinkState.ACTIVE).exists()


def _settle(sink: EventSink, *, error: str, pause: timedelta) -> None:
    """Give the claim back: at once, or after a pause."""
    now, mine = database_time(), EventSink.objects.filter(pk=sink.pk, next_attempt_at=sink.next_attempt_at)
    if not error:
        mine.update(next_attempt_at=now)
        return
    pause = max(pause, PAUSES[min(sink.attempts, len(PAUSES) - 1)])
    mine.update(next_attempt_at=now + pause, attempts=sink.attempts + 1, last_error=error[:MAX_ERROR], failed_at=now)
    log.warning("%s is behind: %s", sink.wire_id, error)


QUEUE = SinkQueue()
deliver_due = partial(send_due, QUEUE)
run_delivery = partial(run_queue, QUEUE)
