"""Recent first: which connection of a pool is taken next.

Each is a process of PostgreSQL's, with plans and caches of its own. In turn, as a pool gives them by itself, each finds what it knows
pushed out of the processor's caches by the others; the one that was given back last still finds it there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool


class _RecentFirst(deque[Any]):
    """Connections that are free: a pool takes them from the left, and gives them back to the right."""

    def append(self, free: Any) -> None:
        self.appendleft(free)


def take_recent_first(pool: ConnectionPool[Any]) -> None:
    """From now on. Once is enough."""
    if type(pool._pool) is deque:
        with pool._lock:
            if type(pool._pool) is deque:
                pool._pool = _RecentFirst(pool._pool)
