"""Connections: what a thread does with its connection while it waits, and whose clock decides."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models.functions import Now

from kernel.database.prepared_statements import fetch_prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg
    from django.db.backends.base.base import BaseDatabaseWrapper

READ_AGAIN_S = 60.0  # quartz drifts by milliseconds meanwhile


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All that is read within is as it was at one moment. For reading only. Within a transaction it is as that transaction sees it.

    What holds one thing that was read against another needs it: what somebody writes between the two is no contradiction.
    """
    if connection.in_atomic_block:
        yield
    else:
        with connection.one_snapshot():  # type: ignore[attr-defined]  # both of our engines have it
            yield


def release_connection() -> None:
    """Give the connection back before waiting for something that is not the database. Never inside a transaction."""
    if connection.in_atomic_block:
        return
    if connection.vendor == "sqlite":
        connection.release()  # type: ignore[attr-defined]  # our engine
    else:
        connection.close()


def keep_connection() -> None:
    """Said once by a thread that works on one piece after the other, as those of a pool do: where the database is a file, what it has
    opened stays open between them. With PostgreSQL the connections are in a pool, and nothing is kept.
    """
    if connection.vendor == "sqlite":
        connection.is_kept = True  # type: ignore[attr-defined]  # our engine


class KeptConnections:
    """Those that the threads of one pool keep, closed when the pool has ended: a thread that ends leaves its own open."""

    def __init__(self) -> None:
        self._kept: list[BaseDatabaseWrapper] = []

    def keep(self) -> None:
        """For each thread, as :func:`keep_connection`."""
        keep_connection()
        self._kept.append(connections[DEFAULT_DB_ALIAS])

    def close(self) -> None:
        """Once no thread of the pool is there any more."""
        for each in self._kept:
            each.inc_thread_sharing()
            each.close()


def work_while_committing(work: Callable[[], object]) -> None:
    """Have this done while the database writes the transaction to its disk, which takes milliseconds, where it can be done then.

    Whether the transaction will be committed is not known yet, so nothing of it may leave this process. It may neither raise nor ask
    the database. It is left out on SQLite and within a transaction that goes on.
    """
    if connection.vendor == "postgresql":
        connection.work_while_committing(work)  # type: ignore[attr-defined]  # our engine


def share_commit() -> None:
    """Let this transaction be committed together with those of other threads that come while one is under way
    (:mod:`kernel.database.postgresql.shared_commits`), where nothing of it was sent before its commit. Left out on SQLite.
    """
    if connection.vendor == "postgresql":
        connection.share_commit()  # type: ignore[attr-defined]  # our engine


def open_direct_connection() -> psycopg.Connection[Any]:
    """A connection of its own to PostgreSQL, outside the pool and in no transaction, for who must stay in one session."""
    import psycopg  # noqa: PLC0415  the embedded default loads none of it

    return psycopg.connect(**connection.get_connection_params(), autocommit=True)


def database_now() -> Any:
    """Now, by the one clock that all hosts share; for use in queries. Leases of one host are not judged by the clock of another."""
    return Now() if connection.vendor == "postgresql" else datetime.now(UTC)


class _DatabaseClock:
    """The database's, as this process last read it, and how long it has counted on since."""

    def __init__(self) -> None:
        self._read: tuple[float, datetime] | None = None

    def now(self) -> datetime:
        read = self._read  # one look: threads share the clock
        if read is None or time.monotonic() - read[0] >= READ_AGAIN_S:
            before = time.monotonic()
            ((moment,),) = fetch_prepared(b"SELECT clock_timestamp()", ())
            read = self._read = (before, moment.astimezone(UTC))
        return read[1] + timedelta(seconds=time.monotonic() - read[0])


_clock = _DatabaseClock()


def database_time() -> datetime:
    """The same as a value, for leases and deadlines that other hosts judge. The database is asked once a minute, not for each."""
    return _clock.now() if connection.vendor == "postgresql" else datetime.now(UTC)
