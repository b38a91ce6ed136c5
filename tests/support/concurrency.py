"""Concurrency: how do tests let things happen at the same time?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
MEET_WITHIN_S = 30


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
