"""Local workers: the threads with which the one process that is all works on what waits.

Who accepts a call hands it to a thread of the same process, without a message in between that somebody would have to look for
(docs/adr/0076). Like every other wake-up it says that there is something to do, and nothing else: the thread takes the call whose turn
it is, and for what nobody heard of the sweeper enqueues it again.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from django.db import close_old_connections

from invocations.queue.notify import CALLS
from kernel.database.connections import KeptConnections
from kernel.fault_injection import inject_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

log = logging.getLogger("toolhub.queue")


class LocalWorkers:
    """The threads of this process. While there are none, as before the start, nobody hears of anything: those that begin look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # nothing is handed to threads that are told to end
        self._submit: Callable[[str], object] | None = None

    @contextmanager
    def running(self, works: Mapping[str, Callable[[], object]], *, threads: int) -> Iterator[None]:
        """While the block runs so many threads do what is enqueued, by ``works``. At its end what has begun is waited for."""
        kept = KeptConnections()
        with closing(kept), ThreadPoolExecutor(threads, thread_name_prefix="worker", initializer=kept.keep) as pool:
            with self._lock:
                self._submit = lambda what: pool.submit(_do, works[what])
            for what in works:  # of which nobody heard before
                self.enqueue(what)
            try:
                yield
            finally:
                with self._lock:
                    self._submit = None
                pool.shutdown(wait=False, cancel_futures=True)

    def enqueue(self, what: str) -> None:
        """Have a thread look for what waits."""
        with self._lock:
            if self._submit is not None:
                self._submit(what)

    def send(self, queue: str, **kwargs: str) -> None:
        """As the sender of a broker's messages, for a call that was just queued. Which queue it would be says nothing here."""
        del queue, kwargs
        self.enqueue(CALLS)


def _do(work: Callable[[], object]) -> None:
    close_old_connections()
    inject_fault("message.heard")
    try:
        work()
    except Exception:
        log.exception("What was enqueued was not done; the sweeper enqueues it again")
    finally:
        close_old_connections()


local_workers = LocalWorkers()
