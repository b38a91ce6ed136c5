"""How do events leave the hub, in order, each at least once, and nobody's behind somebody else's dead server?

A loop in any number of keepers. A sink that is behind is claimed by moving its ``next_attempt_at`` ahead, so one process sends for
it; its ``cursor`` moves when events have arrived. A failure leaves the cursor where it is, and the sink waits, longer each time, for
as long as it takes: a stream without gaps gives nothing up. A sink that is served has a thread; a tenant has few of them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F, OuterRef, Subquery
from django.utils import timezone

from evidence.models import EventSink, Log, SinkChannel, SinkMode, SinkState
from evidence.sinks import files, webhook
from evidence.sinks.cursor import LogGap, next_events
from evidence.sinks.services import note_refusal
from evidence.webhooks.messages import CLAIMED_FOR
from kernel.database.connections import database_time, release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed
from kernel.loops import repeat_work
from kernel.principal import Principal
from kernel.problems import Problem

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator
    from uuid import UUID

log = logging.getLogger("toolhub.events")
EVERY_S = 1.0
AT_ONCE = 16
OF_ONE_TENANT = 2
SERVED_FOR_S = 60.0  # less than a claim: then another process may go on
BATCH = 100
MAX_ERROR = 300
PAUSES = tuple(timedelta(seconds=s) for s in (5, 30, 120, 600, 1800, 3600))  # the last one for ever


class Deliverer:
    """The sinks that are served by this process now."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sink")
        self._running: dict[Future[int], UUID] = {}

    def start_due(self) -> int:
        """Serve the sinks that are behind and whose turn it is, as far as there is room; returns how many were begun."""
        self._running = {each: tenant for each, tenant in self._running.items() if not each.done()}
        of_tenant, begun = Counter(self._running.values()), 0
        for sink in find_lagging_sinks():
            if len(self._running) >= AT_ONCE:
                break
            if of_tenant[sink.tenant_id] < OF_ONE_TENANT and _claim(sink):
                of_tenant[sink.tenant_id] += 1
                self._running[self._pool.submit(_serve, sink)] = sink.tenant_id
                begun += 1
        return begun

    def finish(self) -> int:
        """Wait for what was begun; returns how many events arrived."""
        wait(self._running)
        return sum(each.result() for each in self._running)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def find_lagging_sinks() -> list[EventSink]:
    """Active sinks that have not got all of their log, and wait for nothing; the one that waits longest first."""
    size = Log.objects.filter(pk=OuterRef("tenant_id")).values("size")
    rows = EventSink.objects.filter(state=SinkState.ACTIVE, next_attempt_at__lte=database_time())
    return list(rows.annotate(log_size=Subquery(size)).filter(log_size__gt=F("cursor")).order_by("next_attempt_at"))


def deliver_due() -> int:
    """One pass over what is due; returns how many events arrived."""
    deliverer = Deliverer()
    try:
        arrived = 0
        while deliverer.start_due():
            arrived += deliverer.finish()
        return arrived
    finally:
        deliverer.close()


def _claim(sink: EventSink) -> bool:
    until = database_time() + CLAIMED_FOR
    mine = EventSink.objects.filter(pk=sink.pk, next_attempt_at=sink.next_attempt_at, state=SinkState.ACTIVE)
    won = bool(mine.update(next_attempt_at=until))
    sink.next_attempt_at = until
    return won


def _serve(sink: EventSink) -> int:
    """Send what comes next until nothing is left, something fails, or it has taken long; returns how many arrived."""
    arrived, pause, error = 0, timedelta(), ""
    try:
        for count in _sending(sink):
            arrived += count
    except webhook.EndpointGone:
        error = "Answered 410: nothing is wanted here any more."
        note_refusal(sink, by=Principal.system("events", tenant_id=sink.tenant_id))
    except webhook.EventsNotTaken as failed:
        error, pause = str(failed), failed.retry_after or timedelta()
    except (OutboundFailed, AddressRefused, Problem, LogGap) as failed:
        error = str(failed)
    except OSError as failed:  # of the disk; where it is concerns nobody of the tenant
        error = f"The file could not be written: {failed.strerror or type(failed).__name__}."
    except Exception as failed:  # what nobody thought of is a failed try like others
        log.exception("%s could not be served", sink.wire_id)
        error = type(failed).__name__
    try:
        _settle(sink, error=error, pause=pause)
    finally:
        release_connection()
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
    until, secrets = time.monotonic() + SERVED_FOR_S, webhook.load_secrets(sink)
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


def run_delivery(stop: threading.Event) -> None:
    """Serve sinks until told to stop."""
    deliverer = Deliverer()
    repeat_work(deliverer.start_due, stop, every_s=EVERY_S, what="Events were not sent", log=log)
    deliverer.close()
