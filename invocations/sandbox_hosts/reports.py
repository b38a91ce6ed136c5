"""Host reports: what the sandboxes of all hosts look like, asked by somebody who holds no engine.

Each process that owns sandboxes writes down now and then what it has; the console reads that. The same numbers leave the
process as metrics.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Q
from opentelemetry.metrics import CallbackOptions, Observation

from invocations.direct_runs.selection import SelectingSandbox
from invocations.models import SandboxHost
from invocations.queue.claims import places
from invocations.sandbox.factory import current_sandbox
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.stats import SandboxSnapshot
from invocations.service_levels import call_health
from kernel import names
from kernel.database.connections import database_time, release_connection
from kernel.loops import repeat_work
from kernel.observability import telemetry
from kernel.observability.telemetry import PROCESS

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

log = logging.getLogger("toolhub.worker")

EVERY_S = 3.0
SAID_AGAIN_AFTER = timedelta(seconds=15)
SEEN_WITHIN = timedelta(seconds=30)  # who has not reported for so long is gone, or in trouble
FORGOTTEN_AFTER = timedelta(hours=1)


class Reporter:
    """Writes when something is otherwise than it last wrote; where others read it, also now and then that it is still there."""

    def __init__(self) -> None:
        self._last: tuple[object, datetime] | None = None

    def look(self, now: datetime) -> None:
        snapshot = current_sandbox().snapshot()
        gist = snapshot.gist() if snapshot is not None else None
        again = not settings.TOOLHUB_EMBEDDED and self._last is not None and now - self._last[1] >= SAID_AGAIN_AFTER
        if self._last is None or self._last[0] != gist or again:
            write_report(now)
            self._last = gist, now


def list_snapshots() -> dict[str, SandboxSnapshot]:
    """By who owns the boxes: this process, or each sandbox host that it calls tools on, whoever else does."""
    sandbox = current_sandbox()
    boxes = sandbox.boxes if isinstance(sandbox, SelectingSandbox) else sandbox
    if isinstance(boxes, RemoteSandbox):
        return boxes.list_snapshots()
    snapshot = sandbox.snapshot()
    return {PROCESS: snapshot} if snapshot is not None else {}


def write_report(now: datetime) -> None:
    """Write down what boxes there are, and forget who has long been gone."""
    for name, snapshot in list_snapshots().items():
        SandboxHost.objects.update_or_create(name=name, defaults={"seen_at": now, "snapshot": snapshot.to_json()})
    SandboxHost.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()


def list_hosts(now: datetime) -> list[tuple[SandboxHost, SandboxSnapshot]]:
    """Who reports now, with what they have. This process is there without saying so."""
    rows = SandboxHost.objects.filter(Q(seen_at__gte=now - SEEN_WITHIN) | Q(name=PROCESS)).order_by("name")
    return [(row, SandboxSnapshot.from_json(row.snapshot)) for row in rows]


def run_reporter(stop: threading.Event) -> None:
    """Report until told to stop; then say goodbye."""
    make_instruments()
    call_health.make_instruments()
    reporter = Reporter()
    repeat_work(
        lambda: reporter.look(database_time()),
        stop,
        until_news=False,  # boxes change without a word in the database
        every_s=EVERY_S,
        what="What the sandboxes look like was not written",
        log=log,
    )
    try:
        SandboxHost.objects.filter(name=PROCESS).delete()
    except (DatabaseError, InterfaceError) as error:
        log.warning("The sandboxes of this process are still listed for a while: %s", error)
    finally:
        release_connection()


# Metrics: asked for by whoever exports them.


def _each(numbers: dict[str, int], label: str) -> list[Observation]:
    return [Observation(number, {label: name}) for name, number in numbers.items()]


def _boxes(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    return _each(snapshot.states, "state") if snapshot else []


def _calls(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    if snapshot is None:
        return []
    return [
        Observation(number, {"level": level, "status": status})
        for level, by_status in snapshot.calls.items()
        for status, number in by_status.items()
    ]


def _waiting(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    return [Observation(snapshot.waits.now)] if snapshot else []


def _waited(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    return [Observation(snapshot.waits.sum_s)] if snapshot else []


def _made(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    if snapshot is None:
        return []
    made = {"call": snapshot.cold_starts, "refill": snapshot.refills}
    failed = {"call": snapshot.failed_starts, "refill": snapshot.failed_refills}
    return [Observation(number, {"for": name, "failed": False}) for name, number in made.items()] + [
        Observation(number, {"for": name, "failed": True}) for name, number in failed.items()
    ]


def _kills(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    return _each(snapshot.kills, "reason") if snapshot else []


def _retired(_: CallbackOptions) -> Iterable[Observation]:
    snapshot = current_sandbox().snapshot()
    return _each(snapshot.retired, "reason") if snapshot else []


def _places(_: CallbackOptions) -> Iterable[Observation]:
    """What this process may run at once and what it runs, also when that is nothing."""
    taken, all_of = places.taken(), settings.TOOLHUB_WORKER_CONCURRENCY + settings.TOOLHUB_WORKER_SPARE
    return _each({"running": taken, "free": max(0, all_of - taken)}, "state")


def make_instruments() -> None:
    meter = telemetry.get_meter()
    meter.create_observable_gauge(names.METRIC_PLACES, [_places], description="Places for calls of this worker")
    meter.create_observable_gauge(names.METRIC_BOXES, [_boxes], description="Boxes by state")
    meter.create_observable_gauge(names.METRIC_WAITING, [_waiting], description="Calls that wait for a box")
    meter.create_observable_counter(names.METRIC_CALLS, [_calls], description="Runs by isolation and end")
    meter.create_observable_counter(names.METRIC_WAITED, [_waited], unit="s", description="Time waited for boxes")
    meter.create_observable_counter(names.METRIC_MADE, [_made], description="Boxes made for a call or ahead")
    meter.create_observable_counter(names.METRIC_KILLS, [_kills], description="Tools that were stopped, by reason")
    meter.create_observable_counter(names.METRIC_RETIRED, [_retired], description="Boxes that were ended, by reason")
