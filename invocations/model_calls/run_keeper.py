"""Run keeper: the one light task that keeps the leases of all model calls of a process, and ends those that nobody wants any more.

Once a second it asks the database, with one statement for all of them, whether somebody has asked for the end of one; every third
of a lease it renews them. A call whose row was closed by somebody else is ended here, and what comes of it is not used.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from contextvars import Context
from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from invocations.models import Invocation, State
from kernel.database.connections import database_now, release_connection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from uuid import UUID

    from invocations.model_calls.model_runs import ModelRun

log = logging.getLogger("toolhub.models")
LOOK_EVERY_S = 1.0


def find_unwanted(ids: Collection[UUID], *, renew: bool) -> set[UUID]:
    """Those of these running calls whose end was asked for, or that somebody else has closed. The others keep their lease."""
    try:
        mine = Invocation.objects.filter(pk__in=ids, state=State.RUNNING, cancel_asked_at=None)
        if renew:
            mine.update(lease_until=database_now() + timedelta(seconds=settings.TOOLHUB_LEASE_S))
        return set(ids) - set(mine.values_list("pk", flat=True))
    except (DatabaseError, InterfaceError) as error:
        log.warning("The leases of model calls were not looked at, trying again: %s", error)
        return set()
    finally:
        release_connection()


class RunKeeper:
    """Of one event loop. Its task lives while there is anything to keep."""

    def __init__(self) -> None:
        self._runs: dict[UUID, ModelRun] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def keep(self, run: ModelRun) -> Iterator[None]:
        """Keep the lease of a run while the block runs."""
        self._runs[run.id] = run
        if self._task is None:
            # For all tenants, and not for the one whose run is the first.
            self._task = asyncio.create_task(self._look_after_all(), context=Context())
        try:
            yield
        finally:
            del self._runs[run.id]
            if not self._runs and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look_after_all(self) -> None:
        renewed_at = time.monotonic()
        look = sync_to_async(find_unwanted, thread_sensitive=False)
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            renew = time.monotonic() - renewed_at >= settings.TOOLHUB_LEASE_S / 3
            if renew:
                renewed_at = time.monotonic()
            for id in await look(list(self._runs), renew=renew):
                if (run := self._runs.get(id)) is not None:
                    run.cancel()


_keepers: WeakKeyDictionary[asyncio.AbstractEventLoop, RunKeeper] = WeakKeyDictionary()


def get_run_keeper() -> RunKeeper:
    """The one of the event loop that runs here."""
    return _keepers.setdefault(asyncio.get_running_loop(), RunKeeper())
