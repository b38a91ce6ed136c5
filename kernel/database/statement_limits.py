"""Statement limits: how long a question to the database may take that somebody has made up, before it is given up.

A search of a million rows for what none of them has reads all of them; who waits for it is better told what would narrow it, and the
connection serves others. On PostgreSQL it is ``statement_timeout``, of this transaction alone; on SQLite a look at the clock between
its steps. A question that takes many statements begins none after its time, and one that begins late has what is left: PostgreSQL is
told so once a tenth of the time has gone since it was told last, as that is an exchange more, and most questions take less.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = 20_000  # of SQLite's machine between two looks at the clock
TOLD_AGAIN = 10  # times at most in one question


class StatementTooLong(Exception):
    """The question took longer than it may."""


class _Limit:
    """Until when one question may take, and what the database was told of it."""

    def __init__(self, limit_ms: int, outer: _Limit | None) -> None:
        """``outer``: that of the question which this one is a part of, and which ends it too."""
        ends = time.monotonic() + limit_ms / 1000
        self.ends: float = min(ends, outer.ends) if outer else ends
        self._told_ms, self._step_ms = inf, limit_ms / TOLD_AGAIN
        self._is_told = connection.vendor == "postgresql"

    def begin_statement(self) -> None:
        left_ms = (self.ends - time.monotonic()) * 1000
        if left_ms <= 0:
            raise StatementTooLong
        if self._is_told and left_ms < self._told_ms - self._step_ms:
            self.tell()

    def tell(self) -> None:
        left_ms = max(1, round((self.ends - time.monotonic()) * 1000))  # 0 is none
        self._told_ms = left_ms  # first: what tells it is a statement, too
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {left_ms}")

    def tell_next_time(self) -> None:
        """What it was told within a savepoint that was rolled back it knows no more."""
        self._told_ms = inf


_current: ContextVar[_Limit | None] = ContextVar("statement_limit", default=None)


@contextmanager
def limit_statements(limit_ms: int) -> Iterator[None]:
    """Raises :class:`StatementTooLong`. For questions alone: what was changed within may be undone with it."""
    limited = _in_transaction if connection.vendor == "postgresql" else _by_clock
    outer = _current.get()
    limit = _Limit(limit_ms, outer)
    token = _current.set(limit)

    def begin_statement(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        if _current.get() is not limit:  # that of a part of it ends sooner
            return execute(sql, *arguments)
        limit.begin_statement()
        try:
            return execute(sql, *arguments)
        finally:
            if sql.startswith("ROLLBACK TO"):
                limit.tell_next_time()

    try:
        with limited(limit, outer), connection.execute_wrapper(begin_statement):
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled) or str(error) == "interrupted":
            raise StatementTooLong from error
        raise
    finally:
        _current.reset(token)


def check_time_left() -> None:
    """Before a prepared statement of such a question, of which Django's cursors know nothing. Raises :class:`StatementTooLong`."""
    limit = _current.get()
    if limit is not None:
        limit.begin_statement()


@contextmanager
def _in_transaction(limit: _Limit, outer: _Limit | None) -> Iterator[None]:
    with transaction.atomic(), connection.cursor() as cursor:
        limit.tell()
        yield
        if outer:
            outer.tell()
        else:
            cursor.execute("SET LOCAL statement_timeout = DEFAULT")  # a transaction around this one goes on without it


@contextmanager
def _by_clock(limit: _Limit, outer: _Limit | None) -> Iterator[None]:
    """Without a transaction: one would take the place of whoever writes."""
    connection.ensure_connection()
    _watch_clock(limit)
    try:
        yield
    finally:
        _watch_clock(outer)


def _watch_clock(limit: _Limit | None) -> None:
    ended = (lambda: time.monotonic() > limit.ends) if limit else None
    connection.connection.set_progress_handler(ended, STEPS if limit else 0)
