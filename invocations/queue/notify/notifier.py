"""Notifier: who wakes the workers through PostgreSQL, in this process.

NOTIFY takes one lock for the whole server when its transaction commits. So it is never part of the transaction that queues a call,
and notifications that come together are one.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.queue.notify import CHANNEL
from kernel.database.connections import open_direct_connection
from kernel.singleton import Once

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger("toolhub.queue")
PATIENCE_S = 6.0  # for one notification: as long as a connection may take
TOGETHER_S = 0.005  # between two


@dataclass(slots=True)
class PendingNotification:
    """One that is to come, for all who have asked for it. ``sent``: whether the server has taken it."""

    whats: set[str] = field(default_factory=set)
    done: threading.Event = field(default_factory=threading.Event)
    sent: bool = False


class Notifier:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._next = PendingNotification()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[object] | None = None

    def notify(self, what: str) -> bool:
        """Have the workers look for what waits. True once the server has taken it, False when it does not answer."""
        with self._lock:
            asked = self._next
            asked.whats.add(what)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
                self._thread.start()
        self._asked.set()
        return asked.done.wait(PATIENCE_S) and asked.sent

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            with self._lock:
                taken, self._next = self._next, PendingNotification()
            try:
                self._send(sorted(taken.whats))
                taken.sent = True
            except Exception as error:  # noqa: BLE001  whatever it is, who asked must hear of it
                log.warning("PostgreSQL does not take a wake-up for the workers: %s", error)
            finally:
                taken.done.set()
            time.sleep(TOGETHER_S)

    def _send(self, whats: list[str]) -> None:
        """On the connection that is there; one that was cut in the meantime is replaced, once."""
        for is_last in (False, True):
            try:
                if self._connection is None:
                    self._connection = open_direct_connection()
                for what in whats:
                    self._connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, what])
                return
            except Exception:
                self._connection = None
                if is_last:
                    raise


get_notifier = Once(Notifier)
