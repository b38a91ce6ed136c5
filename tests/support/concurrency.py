"""Concurrency: how do tests let things happen at the same time?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connection, transaction

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
MEET_WITHIN_S = 60
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"


def at_once(count: int, do: Callable[[int], T], *, connections: int = 0) -> list[T | Exception]:
    """``do(0)`` … ``do(count - 1)`` in threads that start together; each result, or what was raised.

    ``connections``: so many have one at a time, as from the pool of a web process; 0: each has one from the start.
    """
    barrier = threading.Barrier(count)
    slots = threading.Semaphore(connections or count)

    def one(number: int) -> T | Exception:
        try:
            if not connections:
                connection.ensure_connection()
            barrier.wait(timeout=MEET_WITHIN_S)
            with slots:
                try:
                    return do(number)
                finally:
                    connection.close()
        except Exception as error:  # noqa: BLE001  the test judges it
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def together(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """``first`` is done and not yet committed when ``second`` starts; it commits once ``second`` waits for it."""

    def behind() -> None:
        try:
            second()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first()
            waiting = pool.submit(behind)
            while not waiting.done() and not is_waited_for():
                pass
            assert not waiting.done(), "Nothing waited: the two did not meet."
        waiting.result(MEET_WITHIN_S)


def is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITS)
        return bool(cursor.fetchone()[0])
