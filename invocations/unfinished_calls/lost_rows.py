"""Lost rows: narrow rows that are not there, or say something else than their calls, and how they are mended.

Triggers keep them, so it takes one that was switched off, or a hand in the database. Narrow rows are few: each is held against its
call. Calls are many: they are looked through by their primary key from the newest on, so many at a time.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from invocations.unfinished_calls.triggers import CALLS, CHANGED, TABLE
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

log = logging.getLogger("toolhub.queue")
LOOK_EVERY_S = 60.0
BATCH = 5_000  # calls: some 10 ms
QUEUED_AND_RUN = timedelta(days=2)  # at most, beside the time for a person
HIGHEST = "f" * 32
_SAID = ", ".join(value.format(call="i") for value in CHANGED.values())
_SAYS = ", ".join(f"n.{column}" for column in CHANGED)
_WRONG = (
    f"SELECT n.id FROM {TABLE} n LEFT JOIN {CALLS} i ON i.id = n.id "  # noqa: S608  names only
    f"WHERE i.id IS NULL OR i.finished_at IS NOT NULL OR ({_SAYS}) {{}} ({_SAID})"
)
_DIFFER = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}
_LOWEST = f"SELECT id FROM {CALLS} WHERE id < %s ORDER BY id DESC LIMIT 1 OFFSET %s"  # noqa: S608
_MISSING = (
    f"SELECT i.id FROM {CALLS} i WHERE i.finished_at IS NULL AND i.id >= %s AND i.id <= %s "  # noqa: S608
    f"AND NOT EXISTS (SELECT 1 FROM {TABLE} n WHERE n.id = i.id)"
)
# The trigger makes the row anew, with the call's own locked: it says what the call says then.
_MAKE = f"UPDATE {CALLS} SET work_class = work_class WHERE id = %s AND finished_at IS NULL"  # noqa: S608
_DROP = (
    f"DELETE FROM {TABLE} WHERE id = %s "  # noqa: S608
    f"AND NOT EXISTS (SELECT 1 FROM {CALLS} i WHERE i.id = %s AND i.finished_at IS NULL)"
)


def find_lost_rows(connection: BaseDatabaseWrapper, *, newest: int | None = None) -> list[str]:
    """The ids of the calls, or of calls that have ended, whose row is not as it should be. ``newest``: of so many calls it is asked
    whether theirs is missing; otherwise of all.
    """
    with connection.cursor() as cursor:
        lowest = "" if newest is None else _find_lowest(cursor, HIGHEST, newest)
        return sorted({*_list_wrong(cursor, connection.vendor), *_list_missing(cursor, lowest, HIGHEST)})


def mend_rows(connection: BaseDatabaseWrapper, ids: list[str]) -> None:
    """Each as its call says at that moment. Whoever mends the same at the same time does it in the same order."""
    with connection.cursor() as cursor:
        for id in ids:
            cursor.execute(_DROP, [id, id])
            cursor.execute(_MAKE, [id])


def _find_lowest(cursor: CursorWrapper, below: str, count: int) -> str:
    """The id of the last of so many calls; empty where there are fewer."""
    cursor.execute(_LOWEST, [below, count - 1])
    found = cursor.fetchone()
    return _hex(found[0]) if found else ""


def _list_wrong(cursor: CursorWrapper, vendor: str) -> list[str]:
    cursor.execute(_WRONG.format(_DIFFER[vendor]))
    return [_hex(id) for (id,) in cursor.fetchall()]


def _list_missing(cursor: CursorWrapper, lowest: str, highest: str) -> list[str]:
    cursor.execute(_MISSING, [lowest or "0" * 32, highest])
    return [_hex(id) for (id,) in cursor.fetchall()]


def _hex(id: object) -> str:
    """As both databases read it: SQLite has ids as such texts."""
    return str(id).replace("-", "")


class LostRowWatch:
    """What the sweeper does about it, now and then: all narrow rows, and the next so many calls. After those that are older than any
    that goes on it is the newest's turn again.
    """

    def __init__(self) -> None:
        self._below, self._next = HIGHEST, 0.0

    def look(self) -> int:
        """How many were mended."""
        if time.monotonic() < self._next:
            return 0
        self._next = time.monotonic() + LOOK_EVERY_S
        connection = connections[DEFAULT_DB_ALIAS]
        with connection.cursor() as cursor:
            lowest = _find_lowest(cursor, self._below, BATCH)
            lost = sorted({*_list_wrong(cursor, connection.vendor), *_list_missing(cursor, lowest, self._below)})
        oldest = datetime.now(UTC) - timedelta(seconds=settings.TOOLHUB_HOLD_S) - QUEUED_AND_RUN
        self._below = lowest if lowest > lowest_id(oldest).hex else HIGHEST
        if lost:
            mend_rows(connection, lost)
            log.warning("%s narrow rows of calls were missing or said something else; they are mended", len(lost))
        return len(lost)


watch = LostRowWatch()
