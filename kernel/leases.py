"""Leases: how what one process has taken stays its own while it waits for something that is not the database.

A store that hangs is waited for without end, which nobody would see while the lease is renewed. So it is left to run out when nothing
has come of the work for a while: then another takes it up, and counts that it has to.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError

from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger("toolhub.leases")
STALLED_AFTER_S = 300  # far longer than a store may take for one object that somebody reads


def _now() -> float:
    return time.monotonic()


@dataclass(slots=True)
class _Work:
    """What is done under a lease."""

    moved_at: float = field(default_factory=lambda: _now())

    @property
    def is_stalled(self) -> bool:
        return _now() - self.moved_at > STALLED_AFTER_S


_work: ContextVar[_Work | None] = ContextVar("work_under_lease", default=None)


def note_progress() -> None:
    """Something came that the work under this lease waits for, if there is a lease."""
    if (work := _work.get()) is not None:
        work.moved_at = _now()


@contextmanager
def renew_lease(renew: Callable[[], bool], *, every_s: float) -> Iterator[None]:
    """Renew it by a thread of its own, for as long as it is there and what is done here goes on (:func:`note_progress`).

    ``renew``: false when it is lost, which whoever works finds out when it writes. That the database is away is tried again. Whoever
    works holds no row that ``renew`` writes, and none of its leases is written by both at once: the thread is over afterwards.
    """
    over, work = threading.Event(), _Work()

    def keep() -> None:
        while not over.wait(every_s):
            if work.is_stalled:
                log.warning("A lease is not renewed any more: nothing has come of the work for %s s", STALLED_AFTER_S)
                return
            try:
                if not renew():
                    return
            except (DatabaseError, InterfaceError) as error:
                log.warning("A lease was not renewed, which is tried again. %s", error)
            finally:
                release_connection()

    thread = threading.Thread(target=copy_context().run, args=(keep,), name="lease", daemon=True)
    token = _work.set(work)
    thread.start()
    try:
        yield
    finally:
        _work.reset(token)
        over.set()
        thread.join()
