"""Statement limits: how long a question to the database may take that somebody has made up, before it is given up.

A search of a million rows for what none of them has reads all of them; who waits for it is better told what would narrow it, and the
connection serves others. On PostgreSQL it is ``statement_timeout``, of this transaction alone; on SQLite a look at the clock between
its steps. A question that takes many statements begins none after its time.
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
_ends: ContextVar[float | None] = ContextVar("statement_limit_ends", default=None)


class StatementTooLong(Exception):
    """The question took longer than it may."""


@contextmanager
def limit_statements(limit_ms: int) -> Iterator[None]:
    """Raises :class:`StatementTooLong`. For questions alone: what was changed within may be undone with it."""
    limited = _in_transaction if connection.vendor == "postgresql" else _by_clock
    token = _ends.set(time.monotonic() + limit_ms / 1000)

    def begin_statement(execute: Callable[..., Any], *arguments: Any) -> Any:
        check_time_left()
        return execute(*arguments)

    try:
        with limited(limit_ms), connection.execute_wrapper(begin_statement):
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled) or str(error) == "interrupted":
            raise StatementTooLong from error
        raise
    finally:
        _ends.reset(token)


def check_time_left() -> None:
    """Before a prepared statement of such a question, of which Django's cursors know nothing. Raises :class:`StatementTooLong`."""
    ends = _ends.get()
    if ends is not None and time.monotonic() > ends:
        raise StatementTooLong


@contextmanager
def _in_transaction(limit_ms: int) -> Iterator[None]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {int(limit_ms)}")
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
