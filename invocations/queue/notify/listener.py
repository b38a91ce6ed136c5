"""Listener: who hears the notifications of PostgreSQL in a worker, and works on what waits.

The threads are this loop's own. While Redis answers nothing is notified and they sleep; while it does not, Celery's threads have
nothing to do. Where both are at work for a moment, no more calls run than the worker has places for.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections

from invocations.models import WorkClass
from invocations.queue.claims import claim_next_call, has_queued_calls, places
from invocations.queue.notify import CALLS, CHANNEL, REPLAYS
from invocations.replays.worker import run_next_batch
from invocations.run.execution import run_claimed_call
from invocations.sandbox.factory import current_sandbox
from kernel.database.connections import open_direct_connection, release_connection

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

log = logging.getLogger("toolhub.queue")
LOOK_AT_STOP_S = 0.5
LISTEN_AGAIN_S = 1.0


def count_threads() -> int:
    """As many as Celery's: those beyond the concurrency are for other tenants than the one that has all of its places."""
    return settings.TOOLHUB_WORKER_CONCURRENCY + settings.TOOLHUB_WORKER_SPARE


class NotifiedWork:
    """Threads that work on what was notified, until they are told to stop, or the worker takes nothing more."""

    def __init__(self, stop: threading.Event, pool: ThreadPoolExecutor) -> None:
        self._stop, self._pool = stop, pool

    def begin(self, what: str) -> None:
        if what == CALLS:
            self._submit(self._run_calls)
        elif what == REPLAYS and WorkClass.LONG in settings.TOOLHUB_WORK_CLASSES:  # whose queue a broker sends them to
            self._submit(run_next_batch)

    def _submit(self, work: Callable[[], object]) -> None:
        if not self._is_over():
            self._pool.submit(self._do, work)

    def _is_over(self) -> bool:
        return self._stop.is_set() or places.closed

    def _do(self, work: Callable[[], object]) -> None:
        if self._is_over():
            return  # it has waited for a thread
        close_old_connections()
        try:
            work()
        except Exception:
            log.exception("What was notified was not done; another notification comes")
        finally:
            close_old_connections()

    def _run_calls(self) -> None:
        """One notification may be for several calls: whoever has claimed one has another thread look too, and looks again after it."""
        while self._may_begin():
            with claim_next_call() as invocation:
                if invocation is None:
                    return
                self._submit(self._run_calls)
                run_claimed_call(invocation)

    def _may_begin(self) -> bool:
        return not self._is_over() and places.taken() < count_threads() and not current_sandbox().closing


def listen_for_notifications(stop: threading.Event) -> None:
    """Listen until told to stop; every worker of the production shape runs this in a thread."""
    with ThreadPoolExecutor(max_workers=count_threads(), thread_name_prefix="notified") as pool:
        work = NotifiedWork(stop, pool)
        while not stop.is_set():
            try:
                _listen(stop, work)
            except (psycopg.Error, DatabaseError, InterfaceError) as error:
                log.warning("The notifications of PostgreSQL are not heard, and listened for again: %s", error)
                stop.wait(LISTEN_AGAIN_S)
        pool.shutdown(wait=False, cancel_futures=True)


def _listen(stop: threading.Event, work: NotifiedWork) -> None:
    with open_direct_connection() as ear:
        ear.execute(f"LISTEN {CHANNEL}")
        # Of which nobody heard before. Looked for here, so that afterwards no thread begins a call that it was not notified of.
        try:
            if has_queued_calls():
                work.begin(CALLS)
        finally:
            release_connection()
        work.begin(REPLAYS)
        log.info("The notifications of PostgreSQL are heard")
        while not stop.is_set():
            for notified in ear.notifies(timeout=LOOK_AT_STOP_S, stop_after=1):
                work.begin(notified.payload)
