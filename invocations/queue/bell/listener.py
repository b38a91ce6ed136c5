"""Listener: who hears the bell in a worker, and works on what waits.

The threads are this loop's own. While Redis answers nothing rings and they sleep; while it does not, Celery's threads have nothing to
do. Where both are at work for a moment, no more calls run than the worker has places for.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
from django.conf import settings
from django.db import close_old_connections

from invocations.queue.bell import CALLS, CHANNEL, REPLAYS
from invocations.queue.claims import claim_next_call, places
from invocations.replays.worker import run_next_batch
from invocations.run.execution import run_claimed_call
from invocations.sandbox.factory import current_sandbox
from kernel.database.connections import open_direct_connection

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

log = logging.getLogger("toolhub.queue")
LOOK_AT_STOP_S = 0.5
LISTEN_AGAIN_S = 1.0


class _Hands:
    """Threads that work on what was rung for."""

    def __init__(self, stop: threading.Event, pool: ThreadPoolExecutor) -> None:
        self._stop, self._pool = stop, pool

    def begin(self, what: str) -> None:
        self._submit(self._run_calls if what == CALLS else self._run_replays)

    def _submit(self, work: Callable[[], object]) -> None:
        if not self._stop.is_set():
            self._pool.submit(self._do, work)

    def _do(self, work: Callable[[], object]) -> None:
        close_old_connections()
        try:
            work()
        except Exception:
            log.exception("What was rung for was not done; it is rung for again")
        finally:
            close_old_connections()

    def _run_calls(self) -> None:
        """One ring may be for several calls: whoever has claimed one has another thread look too, and looks again afterwards."""
        while places.taken() < settings.TOOLHUB_WORKER_CONCURRENCY and not current_sandbox().closing:
            with claim_next_call() as invocation:
                if invocation is None:
                    return
                self._submit(self._run_calls)
                run_claimed_call(invocation)

    def _run_replays(self) -> None:
        run_next_batch()


def listen_for_rings(stop: threading.Event) -> None:
    """Listen until told to stop; every worker of the production shape runs this in a thread."""
    most = settings.TOOLHUB_WORKER_CONCURRENCY + settings.TOOLHUB_WORKER_SPARE
    with ThreadPoolExecutor(max_workers=most, thread_name_prefix="bell") as pool:
        hands = _Hands(stop, pool)
        while not stop.is_set():
            try:
                _listen(stop, hands)
            except psycopg.Error as error:
                log.warning("The bell of PostgreSQL is not heard, and listened for again: %s", error)
                stop.wait(LISTEN_AGAIN_S)
        pool.shutdown(wait=False, cancel_futures=True)


def _listen(stop: threading.Event, hands: _Hands) -> None:
    with open_direct_connection() as ear:
        ear.execute(f"LISTEN {CHANNEL}")
        for what in (CALLS, REPLAYS):  # rung for while nobody listened
            hands.begin(what)
        while not stop.is_set():
            for ring in ear.notifies(timeout=LOOK_AT_STOP_S, stop_after=1):
                hands.begin(ring.payload)
