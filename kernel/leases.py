"""Leases: how what one process has taken stays its own while it waits for something that is not the database."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError

from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger("toolhub.leases")


@contextmanager
def renew_lease(renew: Callable[[], bool], *, every_s: float) -> Iterator[None]:
    """Renew it by a thread of its own, for as long as it is there and what is done here goes on.

    ``renew``: false when it is lost, which whoever works finds out when it writes. That the database is away is tried again. Whoever
    works holds no row that ``renew`` writes, and none of its leases is written by both at once: the thread is over afterwards.
    """
    over = threading.Event()

    def keep() -> None:
        while not over.wait(every_s):
            try:
                if not renew():
                    return
            except (DatabaseError, InterfaceError) as error:
                log.warning("A lease was not renewed, which is tried again. %s", error)
            finally:
                release_connection()

    thread = threading.Thread(target=copy_context().run, args=(keep,), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
