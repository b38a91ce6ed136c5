"""Queues of deliveries: rows that wait to be sent, and the senders that take them.

A sender takes what is due by moving its ``next_attempt_at`` ahead, so of all processes one sends it; what a sender that died has
taken is left to others when the claim is over. It sends with threads, with nothing of the database held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django.db import DatabaseError, InterfaceError

from kernel.database.connections import database_time, release_connection
from kernel.loops import repeat_work

if TYPE_CHECKING:
    import logging
    import threading
    from collections.abc import Callable, Iterable, Mapping

    from django.db.models import QuerySet

R = TypeVar("R")
CLAIMED_FOR = timedelta(minutes=2)
MAX_ERROR = 300


def claim_row(rows: QuerySet[Any], row: Any, **changes: Any) -> bool:
    """Take a row of ``rows`` that is due. Of those who want it one wins."""
    until = database_time() + CLAIMED_FOR
    won = bool(rows.filter(pk=row.pk, next_attempt_at=row.next_attempt_at).update(next_attempt_at=until, **changes))
    if won:
        row.next_attempt_at = until
    return won


class DeliveryQueue(ABC, Generic[R]):
    """Rows of one kind. ``limits``: of how many rows with the same value of a column is sent at once, so that a server which never
    answers holds up nobody else's.
    """

    name: ClassVar[str]
    log: ClassVar[logging.Logger]
    every_s: ClassVar[float] = 1.0
    at_once: ClassVar[int]
    limits: ClassVar[Mapping[str, int]]

    @abstractmethod
    def list_due(self) -> Iterable[R]:
        """Rows that are due, the one that waits longest first."""

    @abstractmethod
    def claim_due(self, row: R) -> bool:
        """Take one of them. False when somebody else has."""

    @abstractmethod
    def serve_row(self, row: R) -> int:
        """Send what was taken, and write down what became of it; returns how many messages arrived."""


class Sender(Generic[R]):
    """What this process sends now."""

    def __init__(self, queue: DeliveryQueue[R]) -> None:
        self._queue = queue
        self._pool = ThreadPoolExecutor(queue.at_once, thread_name_prefix=queue.name)
        self._running: dict[Future[int], R] = {}

    def start_due(self) -> int:
        """Begin what is due, as far as there is room; returns how much was begun."""
        self._running = {each: row for each, row in self._running.items() if not each.done()}
        before = len(self._running)
        if before < self._queue.at_once:
            for row in interleave_tenants(self._queue.list_due(), self._running.values()):
                if self._has_room(row) and self._queue.claim_due(row):
                    self._running[self._pool.submit(self._serve, row)] = row
        return len(self._running) - before

    def _has_room(self, row: R) -> bool:
        return len(self._running) < self._queue.at_once and all(
            sum(getattr(each, name) == getattr(row, name) for each in self._running.values()) < most
            for name, most in self._queue.limits.items()
        )

    def _serve(self, row: R) -> int:
        try:
            return self._queue.serve_row(row)
        except (DatabaseError, InterfaceError) as error:
            self._queue.log.warning("%s was not sent: this is tried again. %s", row, error)
        except Exception:
            self._queue.log.exception("%s was not sent: this is tried again.", row)
        finally:
            release_connection()
        return 0

    def finish(self) -> int:
        """Wait for what was begun; returns how many messages arrived."""
        release_connection()
        wait(self._running)
        return sum(each.result() for each in self._running)

    def close(self) -> None:
        """What is being sent is sent to its end."""
        self._pool.shutdown(cancel_futures=True)


def interleave_tenants(rows: Iterable[Any], running: Iterable[Any] = ()) -> list[Any]:
    """One row of each tenant, then another of each; of whom most is sent already comes last."""
    taken = Counter(row.tenant_id for row in running)

    def turn(row: Any) -> int:
        taken[row.tenant_id] += 1
        return taken[row.tenant_id]

    return sorted(rows, key=turn)


def send_due(queue: DeliveryQueue[Any]) -> int:
    """Send until nothing is due; returns how many messages arrived."""
    sender, arrived = Sender(queue), 0
    try:
        while sender.start_due():
            arrived += sender.finish()
        return arrived
    finally:
        sender.close()


def run_queue(queue: DeliveryQueue[Any], stop: threading.Event, *, before: Callable[[], object] = lambda: None) -> None:
    """Send until told to stop; ``before`` each pass something else may be looked at."""
    sender = Sender(queue)

    def start_pass() -> None:
        before()
        sender.start_due()

    what = f"{queue.name.capitalize()} were not sent"
    repeat_work(start_pass, stop, every_s=queue.every_s, what=what, log=queue.log)
    sender.close()
