"""Claims: which of the calls that wait a worker takes next.

A message only says that there is something to do; who hears it takes the call whose turn it is. Tenants with fewer running calls
come first, those of models not counted, since no worker runs them; then older calls. A tool that takes one call at a time is passed
over while it runs, and one that keeps files while any runs that shares them. Of the places of one worker a tenant has at most all but
those that are kept for others, and calls that may take long have at most half.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from invocations.models import FOR_WORK, Attempt, Invocation, WorkClass
from invocations.queue.run_rows import claim_with_rows
from kernel.database.connections import database_time, share_commit
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.rows import insert_row
from kernel.fault_injection import inject_fault
from kernel.observability.telemetry import PROCESS
from kernel.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.queue.run_rows import ClaimInFlight

log = logging.getLogger("toolhub.queue")
LOOKS = 5  # at most, for one that no other worker takes meanwhile
# Whose turn it is, in order, by what waits and runs alone; of these the first that nobody has locked. `NOT held` says nothing new: by
# these words an index is found which has none of the calls that wait for people, who take their time.
CHOSEN = """
WITH chosen AS (
  SELECT turn.id FROM (
    SELECT w.id FROM invocations_unfinishedcall w
      LEFT JOIN (SELECT tenant_id, count(*) AS at_work FROM invocations_unfinishedcall
                  WHERE state = 'running' AND NOT held AND NOT of_model GROUP BY tenant_id) busy
        ON busy.tenant_id = w.tenant_id
     WHERE w.state = 'queued' AND NOT w.held AND (w.overdue_at IS NULL OR w.overdue_at > {now})
       AND w.work_class IN ({classes}) AND w.tenant_id NOT IN ({full}){not_serial}
       AND NOT (w.serial_key <> '' AND EXISTS (
           SELECT 1 FROM invocations_unfinishedcall r
            WHERE r.tenant_id = w.tenant_id AND r.running_key <> '' AND r.running_key = w.serial_key))
     ORDER BY COALESCE(busy.at_work, 0), w.id
  ) turn {lock} LIMIT 1
)"""
# queued -> running, by compare-and-set; `attempt` is the fencing token of the run.
UPDATE = """
UPDATE invocations_invocation
   SET state = 'running', attempt = attempt + 1, started_at = {started}, lease_until = {lease_until}
 WHERE id = (SELECT id FROM chosen) AND state = 'queued'"""
# Of several claims in one transaction only the first may be of a serial tool: two workers that have one each, and want the other's,
# would wait for each other.
POSTGRESQL = f"{CHOSEN}, claimed AS ({UPDATE}".format(
    not_serial=" AND (%(is_first)s::boolean OR w.serial_key = '')",
    now="clock_timestamp()",
    classes="SELECT unnest(%(classes)s::text[])",
    full="SELECT unnest(%(full)s::uuid[])",
    # The row of the call itself, as whoever changes it has it locked first; asked one by one until one is free.
    lock="""CROSS JOIN LATERAL (
    SELECT FROM invocations_invocation i WHERE i.id = turn.id AND i.state = 'queued' FOR UPDATE SKIP LOCKED) free""",
    started="%(started_at)s::timestamptz",
    lease_until="clock_timestamp() + %(lease_s)s * interval '1 second'",
)
SQLITE = f"{CHOSEN}{UPDATE} RETURNING id".format(
    not_serial="",
    now="%(started)s",
    classes="SELECT value FROM json_each(%(classes)s)",
    full="SELECT value FROM json_each(%(full)s)",
    lock="",
    started="%(started)s",
    lease_until="%(lease_until)s",
).encode()

WAITING = b"SELECT 1 FROM invocations_unfinishedcall WHERE state = 'queued' AND NOT held LIMIT 1"
# The same, and whether one of a tenant that has places left.
WAITING_BESIDE = b"""
SELECT EXISTS (SELECT FROM invocations_unfinishedcall WHERE state = 'queued' AND NOT held AND tenant_id <> ALL(%(full)s::uuid[])),
       EXISTS (SELECT FROM invocations_unfinishedcall WHERE state = 'queued' AND NOT held)"""


@dataclass(frozen=True, slots=True)
class FreePlaces:
    """What may be begun here. ``classes``: of which classes of work; ``full``: tenants that have all the places that they may have
    here; ``count``: how many calls at once, whosever of the others they are and however long they take.
    """

    classes: list[str]
    full: list[UUID]
    count: int


class WorkerSlots:
    """What this process is working on. One thread claims at a time, so that the counts are true."""

    def __init__(self) -> None:
        self.claiming = threading.Lock()
        self.closed = False
        self._lock = threading.Lock()
        self._of_tenant: Counter[UUID] = Counter()
        self._long = 0
        self._left = 0
        self._missed = False

    def close(self) -> None:
        """Take nothing more: the process was told to end, and what waits is another's."""
        self.closed = True

    def wait_for_claim(self) -> None:
        """Once closed, until whoever claims at this moment has its place; nobody takes one afterwards."""
        with self.claiming:
            pass

    def find_free(self) -> FreePlaces:
        """In one look: room that is made meanwhile would be there for some of it, and not counted in the rest."""
        most, served = settings.TOOLHUB_WORKER_CONCURRENCY, settings.TOOLHUB_WORK_CLASSES
        with self._lock:
            of_tenant, long = dict(self._of_tenant), self._long
        left = [most - count for count in of_tenant.values()]
        full = [tenant for tenant, count in of_tenant.items() if count >= most]
        classes = list(served)
        if WorkClass.LONG in served and served != [WorkClass.LONG]:
            left.append(max(1, most // 2) - long)
            if left[-1] <= 0:
                classes.remove(WorkClass.LONG)
        return FreePlaces(classes, full, min((each for each in left if each > 0), default=most))

    def any_taken(self) -> bool:
        with self._lock:
            return bool(self._of_tenant)

    def taken(self) -> int:
        """How many calls this process works on."""
        with self._lock:
            return self._of_tenant.total()

    def take(self, invocation: Invocation) -> None:
        with self._lock:
            self._of_tenant[invocation.tenant_id] += 1
            self._long += invocation.work_class == WorkClass.LONG

    def leave(self, invocation: Invocation) -> None:
        with self._lock:
            self._of_tenant[invocation.tenant_id] -= 1
            self._long -= invocation.work_class == WorkClass.LONG
            self._of_tenant += Counter()  # forgets who has none
            self._left += 1

    def count_left(self) -> int:
        """How many calls have ended here."""
        with self._lock:
            return self._left

    def note_missed(self, left: int) -> bool:
        """That something waits for which there is no place: whoever ends next looks again. False when somebody
        has ended since ``left`` was counted, and may not have seen this.
        """
        with self._lock:
            if self._left != left:
                return False
            self._missed = bool(self._of_tenant)
            return True

    def forget_missed(self) -> None:
        """Nothing waits any more."""
        with self._lock:
            self._missed = False

    def has_missed(self) -> bool:
        """Whether whoever has ended a call is to look for another: several may wait whose messages are spent."""
        with self._lock:
            return self._missed


@dataclass(slots=True, eq=False)
class WantedCall:
    """A thread that has a place for a call. ``is_decided``: that there is one for it, or none."""

    invocation: Invocation | None = None
    is_decided: bool = False

    def decide(self, invocation: Invocation | None) -> None:
        self.invocation, self.is_decided = invocation, True


places = WorkerSlots()
turns: Turns[WantedCall] = Turns()


@contextmanager
def claim_next_call() -> Iterator[Invocation | None]:
    """Claim the next call and hold a place for it; None when there is nothing to do here. Threads that come while another claims are
    claimed for together.
    """
    wanted = WantedCall()
    while not wanted.is_decided:
        with turns.take(wanted) as group:
            if group:
                _claim_for(group)
    try:
        yield wanted.invocation
    finally:
        if wanted.invocation is not None:
            places.leave(wanted.invocation)


def _claim_for(group: list[WantedCall]) -> None:
    """Who gets none of several goes again: only where the first finds nothing there is nothing for anybody."""
    with places.claiming:
        claimed = _take_places(len(group))
    if len(claimed) > 1:
        inject_fault("claims.committed")
    found: list[Invocation | None] = [*claimed] or [None] * len(group)
    for wanted, invocation in zip(group, found, strict=False):
        wanted.decide(invocation)


def _take_places(wanted: int) -> list[Invocation]:
    while not places.closed:
        left, free = places.count_left(), places.find_free()
        may_find, some_wait = _look_beside(free.full)
        claimed = claim_calls(wanted, free) if may_find else []
        if claimed:
            for each in claimed:
                places.take(each)
            return claimed
        if not (places.any_taken() and (has_queued_calls() if some_wait is None else some_wait)):
            places.forget_missed()
            break
        if places.note_missed(left):
            break
    return []


def _look_beside(full: list[UUID]) -> tuple[bool, bool | None]:
    """Whether a claim may find anything, and whether anything waits; None where that is not known.

    A tenant that has all its places may still have a message for each of its calls that wait. So while one has, it is asked first
    whether a call of anybody else waits, which costs a fraction of a claim.
    """
    if not full or connection.vendor != "postgresql":
        return True, None
    ((may_find, some_wait),) = fetch_prepared(WAITING_BESIDE, {"full": full})
    return may_find, None if may_find else some_wait


def has_queued_calls() -> bool:
    """Whether any call of any tenant waits for a worker, here or elsewhere."""
    return bool(fetch_prepared(WAITING, ()))


def claim_call() -> Invocation | None:
    """The call whose turn it is, now running under a lease; None when no call waits that may run here."""
    return next(iter(claim_calls(1, places.find_free())), None)


def claim_calls(wanted: int, free: FreePlaces) -> list[Invocation]:
    """As many as are wanted, in one transaction, each chosen as if it were alone; fewer where fewer may run here."""
    if not free.classes:
        return []
    for _ in range(LOOKS):
        try:
            if connection.vendor == "postgresql":
                return _claim_postgresql(min(wanted, free.count), free)
            return list(filter(None, [_claim(free)]))
        except IntegrityError:
            continue  # another worker has begun a call of the same serial tool at this moment, and is seen from now on
    return []


def _claim_postgresql(wanted: int, free: FreePlaces) -> list[Invocation]:
    asked: dict[str, Any] = {"classes": free.classes, "full": free.full, "lease_s": settings.TOOLHUB_LEASE_S}
    with transaction.atomic():
        share_commit()
        sent = [
            claim_with_rows(
                Attempt(worker=PROCESS, started_at=datetime.now(UTC)), asked | {"is_first": not number}, POSTGRESQL
            )
            for number in range(wanted)
        ]
        inject_fault("claim.before_commit")
    return _read_claimed(sent)


def _read_claimed(sent: list[ClaimInFlight]) -> list[Invocation]:
    """One that cannot be read is run by nobody, and a lost run once its lease has ended. Others that were claimed with it are run."""
    found: list[Invocation] = []
    failed: list[Exception] = []
    for one in sent:
        try:
            invocation = one.read()
        except Exception as error:  # noqa: BLE001  whatever it is, it is of this one
            failed.append(error)
        else:
            found += [] if invocation is None else [invocation]
    if failed and not found:
        raise failed[0]
    for each in failed:
        log.error("A call was claimed that cannot be read; its run is lost", exc_info=each)
    return found


@transaction.atomic
def _claim(free: FreePlaces) -> Invocation | None:
    now = datetime.now(UTC)
    rows = _start_next({"classes": free.classes, "full": free.full, "started": now})
    if not rows:
        return None
    invocation = FOR_WORK.get(pk=UUID(str(rows[0][0])))
    insert_row(Attempt(invocation=invocation, number=invocation.attempt, worker=PROCESS, started_at=now))
    inject_fault("claim.before_commit")
    return invocation


def _start_next(asked: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The id of the call that was claimed on SQLite, under a lease by the clock of the database."""
    lease_until = database_time() + timedelta(seconds=settings.TOOLHUB_LEASE_S)
    return fetch_prepared(SQLITE, asked | {"lease_until": lease_until})
