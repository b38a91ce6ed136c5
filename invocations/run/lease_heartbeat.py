"""Lease heartbeat: the watch over a run, so that its lease holds and it ends when nobody wants it any more.

One thread for each run: it renews the lease, and ends the box when the call was closed by somebody else or its caller has
asked for the end. One thread for all: it ends the runs whose lease could not be renewed before that lease is over, also while the
others still wait for the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Q

from invocations.models import Invocation, State, build_box_name
from invocations.problems import CallCancelled
from invocations.sandbox.factory import current_sandbox
from kernel.database.connections import database_now, release_connection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

log = logging.getLogger("toolhub.worker")

NOT_RUN = "This call was cancelled before its tool was run."
_AGAIN_S = 0.05  # a run that has just begun may not be known to the sandbox yet
_REMEMBERED = 1000
_GIVEN_UP_AT = 0.8  # of a lease that was not renewed: its run has to be over before others take the call for lost


class RunWatch:
    """One run: poked when it is to end or has ended. ``kept_at``: when its lease was last asked for and given; ``given_up``: it could
    not be renewed, so the run was ended here, and whoever sweeps takes the call for lost. ``lease_s``: how long it holds.
    """

    def __init__(self, box: str, kept_at: float, lease_s: float) -> None:
        self.box, self.kept_at, self.lease_s = box, kept_at, lease_s
        self.poked = threading.Event()
        self.unwanted = False
        self.given_up = False
        self.over = False

    def check_wanted(self) -> None:
        """Before the tool is run: whether the call is still this worker's, and wanted."""
        if self.unwanted or self.given_up:
            raise CallCancelled(NOT_RUN)


_lock = threading.Lock()
_begun = threading.Condition(_lock)
_watches: dict[UUID, RunWatch] = {}
_guard: threading.Thread | None = None
_unwanted: OrderedDict[UUID, None] = OrderedDict()  # asked to end before their run was known here


def end_run(invocation_id: UUID) -> None:
    """End the run of this call if it is, or soon will be, a run of this process."""
    with _lock:
        watch = _watches.get(invocation_id)
        if watch is None:
            _unwanted[invocation_id] = None
            while len(_unwanted) > _REMEMBERED:
                _unwanted.popitem(last=False)
            return
        watch.unwanted = True
    watch.poked.set()


def _keep_lease(invocation: Invocation, lease_s: float) -> bool | None:
    """False when this run has lost it, or its caller has asked for the end; None when the database does not answer."""
    mine = Q(pk=invocation.pk, state=State.RUNNING, attempt=invocation.attempt, cancel_asked_at=None)
    lease_until = database_now() + timedelta(seconds=lease_s)
    try:
        return Invocation.objects.filter(mine).update(lease_until=lease_until) == 1
    except (DatabaseError, InterfaceError) as error:
        log.warning("A heartbeat was not written, trying again: %s", error)
        return None
    finally:
        release_connection()


def _take_up(invocation: Invocation, lease_s: float) -> float:
    """When the lease was last given. Of a claim that has become old nobody knows whose the call is by now: nothing runs
    then before the lease was renewed.
    """
    now = time.monotonic()
    age = (datetime.now(UTC) - invocation.started_at).total_seconds() if invocation.started_at else 0.0
    if age <= lease_s / 3:
        return now - age
    if not _keep_lease(invocation, lease_s):
        raise CallCancelled(NOT_RUN)
    return now


def _end_box(watch: RunWatch) -> None:
    """One that cannot be ended now is tried again, and keeps nobody from ending the others."""
    try:
        current_sandbox().kill(watch.box)
    except Exception:
        log.exception("The run %s could not be ended and is tried again", watch.box)


def _send_heartbeats(invocation: Invocation, watch: RunWatch) -> None:
    while True:
        watch.poked.wait(watch.lease_s / 3)
        watch.poked.clear()
        if watch.over:
            return
        asked_at = time.monotonic()
        kept = not watch.unwanted and _keep_lease(invocation, watch.lease_s)
        if kept:
            watch.kept_at = asked_at
        elif kept is False:
            watch.unwanted = True
            break
    log.warning("%s was closed or cancelled; its run is ended", invocation.wire_id)
    while not watch.over:
        _end_box(watch)
        watch.poked.wait(_AGAIN_S)


def _end_unkept() -> None:
    """Who cannot renew its lease ends its run before others take the call for lost, so that no two runs of it overlap.

    How long a lease holds is said by the runs: settings fail to answer a thread while a test exchanges them, and this one is the
    only one of its process.
    """
    while True:
        with _begun:
            _begun.wait_for(lambda: _watches)
            look_again_s = min(1.0, min(watch.lease_s for watch in _watches.values()) / 20)
            now = time.monotonic()
            late = [watch for watch in _watches.values() if now - watch.kept_at > watch.lease_s * _GIVEN_UP_AT]
        for watch in late:
            log.warning("The lease of %s cannot be kept; its run is ended", watch.box)
            watch.given_up = True
            _end_box(watch)
        time.sleep(look_again_s)


@contextmanager
def keep_lease(invocation: Invocation) -> Iterator[RunWatch]:
    """Watch over the run while the block runs. Raises when the call is not this worker's any more; then nothing may run."""
    global _guard
    lease_s = settings.TOOLHUB_LEASE_S
    watch = RunWatch(build_box_name(invocation), _take_up(invocation, lease_s), lease_s)
    with _lock:
        if _guard is None:
            _guard = threading.Thread(target=_end_unkept, name="leases", daemon=True)
            _guard.start()
        _watches[invocation.pk] = watch
        _begun.notify()
        if invocation.pk in _unwanted:
            del _unwanted[invocation.pk]
            watch.unwanted = True
            watch.poked.set()
    thread = threading.Thread(
        target=_send_heartbeats, args=(invocation, watch), name=f"mind-{invocation.wire_id}", daemon=True
    )
    thread.start()
    try:
        yield watch
    finally:
        with _lock:
            if _watches.get(invocation.pk) is watch:  # and not that of a later run of the same call
                del _watches[invocation.pk]
        watch.over = True
        watch.poked.set()
        thread.join()
