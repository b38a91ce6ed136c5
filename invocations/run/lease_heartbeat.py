"""Lease heartbeat: the watch over a run, so that its lease holds and it ends when nobody wants it any more.

Two threads for all runs of a process, and none for a run that ends by itself. One renews the leases, those that are due together, and
has runs ended whose call was closed by somebody else or whose caller has asked for the end. It waits for no row that somebody keeps
locked: the other runs would lose their leases too. One ends the runs whose lease could not be renewed before that lease is over, also
while the other still waits for the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Q

from invocations.models import Invocation, State, build_box_name
from invocations.problems import CallCancelled
from invocations.sandbox.factory import current_sandbox
from kernel.database.connections import database_now, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

log = logging.getLogger("toolhub.worker")

NOT_RUN = "This call was cancelled before its tool was run."
_AGAIN_S = 0.05  # a run that has just begun may not be known to the sandbox yet
_REMEMBERED = 1000
_GIVEN_UP_AT = 0.8  # of a lease that was not renewed: its run has to be over before others take the call for lost


class RunWatch:
    """One run. ``kept_at``: when its lease was last asked for and given; ``given_up``: it could not be renewed, so the run was ended
    here, and whoever sweeps takes the call for lost. ``lease_s``: how long it holds.
    """

    def __init__(self, invocation: Invocation, kept_at: float, lease_s: float) -> None:
        self.invocation, self.box = invocation, build_box_name(invocation)
        self.kept_at, self.lease_s = kept_at, lease_s
        self.renew_at = kept_at + lease_s / 3
        self.unwanted = False
        self.given_up = False
        self.over = threading.Event()
        self.renewal = threading.Lock()  # whoever has it renews, or says that the run is over
        self._end: threading.Thread | None = None

    def check_wanted(self) -> None:
        """Before the tool is run: whether the call is still this worker's, and wanted."""
        if self.unwanted or self.given_up:
            raise CallCancelled(NOT_RUN)

    def note_renewal(self, asked_at: float, kept: bool | None) -> None:
        """None: not known, so it is asked again with the next look."""
        if kept:
            self.kept_at = asked_at
            self.renew_at = asked_at + self.lease_s / 3
        elif kept is False:
            self.end_run()

    def end_run(self) -> None:
        """In a thread of its own, since nobody else's run may wait for the end of this one."""
        with _lock:  # until it is started: who closes joins it
            if self.unwanted or self.over.is_set():
                return
            self.unwanted = True
            name = f"end-{self.invocation.wire_id}"
            self._end = threading.Thread(target=self._end_until_over, name=name, daemon=True)
            self._end.start()

    def _end_until_over(self) -> None:
        log.warning("%s was closed or cancelled; its run is ended", self.invocation.wire_id)
        while not self.over.is_set():
            _end_box(self)
            self.over.wait(_AGAIN_S)

    def close(self) -> None:
        """The run is over: nothing is renewed or ended any more when this returns."""
        with self.renewal:
            self.over.set()
        with _lock:
            end = self._end
        if end is not None:
            end.join()


_lock = threading.Lock()
_begun = threading.Condition(_lock)
_watches: dict[UUID, RunWatch] = {}
_guards: list[threading.Thread] = []
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
    watch.end_run()


def _is_mine(invocation: Invocation) -> Q:
    """Whether the call is still this run's, and its caller has not asked for the end."""
    return Q(pk=invocation.pk, state=State.RUNNING, attempt=invocation.attempt, cancel_asked_at=None)


def _keep_lease(invocation: Invocation, lease_s: float) -> bool:
    """Before the run; the thread that is to run it waits for whoever has the row locked."""
    lease_until = database_now() + timedelta(seconds=lease_s)
    try:
        return Invocation.objects.filter(_is_mine(invocation)).update(lease_until=lease_until) == 1
    except (DatabaseError, InterfaceError) as error:
        log.warning("A lease was not renewed, so its run does not begin: %s", error)
        return False
    finally:
        release_connection()


def _keep_leases(watches: list[RunWatch]) -> dict[UUID, bool]:
    """By call: False when this run has lost it, or its caller has asked for the end. Those whose row somebody has locked are left out,
    and all when the database does not answer.
    """
    mine = Invocation.objects.filter(reduce(or_, (_is_mine(watch.invocation) for watch in watches)))
    lengths = {watch.invocation.pk: watch.lease_s for watch in watches}
    try:
        with transaction.atomic():
            free = set(mine.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
            for lease_s in {lengths[pk] for pk in free}:
                kept = Invocation.objects.filter(pk__in=[pk for pk in free if lengths[pk] == lease_s])
                kept.update(lease_until=database_now() + timedelta(seconds=lease_s))
        left = lengths.keys() - free
        locked = set(mine.filter(pk__in=left).values_list("pk", flat=True)) if left else set()
    except (DatabaseError, InterfaceError) as error:
        log.warning("Heartbeats were not written, trying again: %s", error)
        return {}
    finally:
        release_connection()
    return {pk: pk in free for pk in lengths.keys() - locked}


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


def _renew_leases(watches: list[RunWatch]) -> None:
    """Those that are due: most runs end before theirs is."""
    asked_at = time.monotonic()
    with ExitStack() as renewals:
        due = [watch for watch in watches if watch.renew_at <= asked_at]
        for watch in due:
            renewals.enter_context(watch.renewal)
        due = [watch for watch in due if not (watch.over.is_set() or watch.unwanted)]
        if not due:
            return
        kept = _keep_leases(due)
        for watch in due:
            watch.note_renewal(asked_at, kept.get(watch.invocation.pk))


def _end_unkept(watches: list[RunWatch]) -> None:
    """Who cannot renew its lease ends its run before others take the call for lost, so that no two runs of it overlap."""
    now = time.monotonic()
    for watch in watches:
        if now - watch.kept_at > watch.lease_s * _GIVEN_UP_AT:
            log.warning("The lease of %s cannot be kept; its run is ended", watch.box)
            watch.given_up = True
            _end_box(watch)


def _look_after_runs(look: Callable[[list[RunWatch]], None]) -> None:
    """Now and then while there are runs: a thread that was woken for each would cost more than its look.

    How long a lease holds is said by the runs: settings fail to answer a thread while a test exchanges them, and these are the only
    ones of their process.
    """
    while True:
        with _begun:
            _begun.wait_for(lambda: _watches)
            watches = list(_watches.values())
        try:
            look(watches)
        except Exception:
            log.exception("Runs could not be looked after and are looked after again")
        time.sleep(min(1.0, min(watch.lease_s for watch in watches) / 20))


def _start_guards() -> None:
    for name, look in (("heartbeats", _renew_leases), ("leases", _end_unkept)):
        guard = threading.Thread(target=_look_after_runs, args=(look,), name=name, daemon=True)
        guard.start()
        _guards.append(guard)


@contextmanager
def keep_lease(invocation: Invocation) -> Iterator[RunWatch]:
    """Watch over the run while the block runs. Raises when the call is not this worker's any more; then nothing may run."""
    lease_s = settings.TOOLHUB_LEASE_S
    watch = RunWatch(invocation, _take_up(invocation, lease_s), lease_s)
    with _lock:
        if not _guards:
            _start_guards()
        _watches[invocation.pk] = watch
        _begun.notify_all()
        is_unwanted = invocation.pk in _unwanted
        _unwanted.pop(invocation.pk, None)
    if is_unwanted:
        watch.end_run()
    try:
        yield watch
    finally:
        with _lock:
            if _watches.get(invocation.pk) is watch:  # and not that of a later run of the same call
                del _watches[invocation.pk]
        watch.close()
