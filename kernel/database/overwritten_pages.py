"""Overwritten pages: that what was removed leaves the log of the database's file too.

Where the database is a file, its log holds pages as they were before something on them was removed, until it is written over or cut.
Somebody who reads them keeps it from being cut, and a process may end before it has done so. So what was removed is remembered until
the log was cut after it, and a process that has just begun knows nothing. PostgreSQL's log is its server's matter.
"""

from __future__ import annotations

import logging
import threading
import time

from django.db import DatabaseError, connection

log = logging.getLogger("toolhub.database")
WITHIN_MS = 200  # nobody writes while this waits for readers
TOLD_AFTER_S = 60.0  # of attempts in vain


class _FileLog:
    """What is known of the log: how many removals it has seen, and how many of them were before it was last cut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.removals, self._dropped = 1, 0
        self._in_vain_since: float | None = None
        self._is_told = False

    @property
    def is_clean(self) -> bool:
        return self._dropped == self.removals

    def note_removal(self) -> None:
        with self._lock:
            self.removals += 1

    def note_drop(self, removals: int) -> None:
        with self._lock:
            self._dropped = max(self._dropped, removals)
            self._in_vain_since, self._is_told = None, False

    def tell_once(self, why: object) -> None:
        """Not with every attempt, and not of a reader who is gone in a moment."""
        now = time.monotonic()
        if self._in_vain_since is None:
            self._in_vain_since = now
        if not self._is_told and now - self._in_vain_since >= TOLD_AFTER_S:
            log.warning("What was removed is still in the log of the database's file: this is tried again. %s", why)
            self._is_told = True


_file_log = _FileLog()


def note_removal() -> None:
    """Said once a transaction is committed that has removed what nobody may read any more."""
    _file_log.note_removal()


def drop_overwritten_pages() -> bool:
    """Cut the log if anything was removed since it last was. False: it is to be tried again, when nobody reads it any more."""
    if connection.vendor != "sqlite" or _file_log.is_clean:
        return True
    if connection.in_atomic_block:
        return False  # within a transaction nothing is gone yet
    removals = _file_log.removals
    try:
        is_busy = _cut_log()
    except DatabaseError as error:
        _file_log.tell_once(error)
        return False
    if is_busy:
        _file_log.tell_once("Somebody reads it.")
        return False
    _file_log.note_drop(removals)
    return True


def _cut_log() -> bool:
    """Whether somebody was in the way."""
    with connection.cursor() as cursor:
        (patience_ms,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {WITHIN_MS}")
        try:
            (is_busy, *_) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")
    return bool(is_busy)
