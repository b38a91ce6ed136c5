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

    def __init__(self, limit_ms: int) -> None:
        self._ends = time.monotonic() + limit_ms / 1000
        self._told_ms, self._step_ms = float(limit_ms), limit_ms / TOLD_AGAIN
        self._is_told = connection.vendor == "postgresql"

    def begin_statement(self) -> None:
        left_ms = (self._ends - time.monotonic()) * 1000
        if left_ms <= 0:
            raise StatementTooLong
        if self._is_told and left_ms < self._told_ms - self._step_ms:
            self._told_ms = left_ms  # first: what tells it is a statement, too
            with connection.cursor() as cursor:
                cursor.execute(_tell(left_ms))


_current: ContextVar[_Limit | None] = ContextVar("statement_limit", default=None)


@contextmanager
def limit_statements(limit_ms: int) -> Iterator[None]:
    """Raises :class:`StatementTooLong`. For questions alone: what was changed within may be undone with it."""
    limited = _in_transaction if connection.vendor == "postgresql" else _by_clock
    limit = _Limit(limit_ms)
    token = _current.set(limit)

    def begin_statement(execute: Callable[..., Any], *arguments: Any) -> Any:
        limit.begin_statement()
        return execute(*arguments)

    try:
        with limited(limit_ms), connection.execute_wrapper(begin_statement):
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


def _tell(limit_ms: float) -> str:
    return f"SET LOCAL statement_timeout = {max(1, round(limit_ms))}"  # 0 is none


@contextmanager
def _in_transaction(limit_ms: int) -> Iterator[None]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_tell(limit_ms))
        yield
        cursor.execute("SET LOCAL statement_timeout = DEFAULT")  # a transaction around this one goes on without it


@contextmanager
def _by_clock(limit_ms: int) -> Iterator[None]:
    """Without a transaction: one would take the place of whoever writes."""
    connection.ensure_connection()
    ends = time.monotonic() + limit_ms / 1000
    connection.connection.set_progress_handler(lambda: time.monotonic() > ends, STEPS)
    try:
        yield
    finally:
        connection.connection.set_progress_handler(None, 0)
