"""Archive turns: one run at a time, since two would set each other's checkpoints back."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from kernel.database.connections import open_direct_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK = 0x617263686976  # of PostgreSQL, for a session


class ArchiveBusy(Exception):
    """Another run is at it."""


@contextmanager
def take_turn_at_archive() -> Iterator[None]:
    """For the whole hub. Raises :class:`ArchiveBusy`. A run that dies gives its turn back by that."""
    with _lock_database() if connection.vendor == "postgresql" else _lock_folder():
        yield


@contextmanager
def _lock_database() -> Iterator[None]:
    with open_direct_connection() as session:
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if row is None or not row[0]:
            raise ArchiveBusy
        yield


@contextmanager
def _lock_folder() -> Iterator[None]:
    with Path(settings.TOOLHUB_DATA_DIR, "archive.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveBusy from None
        yield
