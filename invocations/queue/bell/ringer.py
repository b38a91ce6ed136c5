"""Ringer: who rings the bell in this process.

NOTIFY takes one lock for the whole server when its transaction commits. So it is never part of the transaction that queues a call,
and rings that come together are one.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.queue.bell import CHANNEL
from kernel.database.connections import open_direct_connection
from kernel.singleton import Once

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger("toolhub.queue")
PATIENCE_S = 6.0  # for one ring: as long as a connection may take
TOGETHER_S = 0.005  # between two rings


@dataclass(slots=True)
class Ring:
    """One that is to come, for all who have asked for it. ``heard``: whether the server has taken it."""

    whats: set[str] = field(default_factory=set)
    done: threading.Event = field(default_factory=threading.Event)
    heard: bool = False


class Ringer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._next = Ring()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[object] | None = None

    def ring(self, what: str) -> bool:
        """Have the workers look for what waits. True once the server has the ring, False when it does not answer."""
        with self._lock:
            asked = self._next
            asked.whats.add(what)
            if self._thread is None:
                self._thread = threading.Thread(target=self._ring_for_ever, name="ringer", daemon=True)
                self._thread.start()
        self._asked.set()
        return asked.done.wait(PATIENCE_S) and asked.heard

    def _ring_for_ever(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            with self._lock:
                ring, self._next = self._next, Ring()
            try:
                self._notify(sorted(ring.whats))
                ring.heard = True
            except Exception as error:  # noqa: BLE001  whatever it is, who asked must hear of it
                log.warning("PostgreSQL does not take a ring for the workers: %s", error)
            finally:
                ring.done.set()
            time.sleep(TOGETHER_S)

    def _notify(self, whats: list[str]) -> None:
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


get_ringer = Once(Ringer)
