"""How does PostgreSQL run a statement of every call without planning it again?

Django binds parameters in the client, which keeps a statement from being prepared. A cursor with server-side binding on
Django's own connection, inside its transaction, can prepare it, once a connection. Only these statements are: for pages of
lists the general plan is far worse than one made for the values at hand.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Parameters = Mapping[str, Any] | Sequence[Any]


@contextmanager
def _executed(statement: bytes, parameters: Parameters) -> Iterator[psycopg.Cursor[Any]]:
    connection: Any = connections[DEFAULT_DB_ALIAS]
    connection.ensure_connection()
    raw = connection.connection
    if raw.prepare_threshold is None:  # Django's default; psycopg prepares nothing then, not even what asks for it
        raw.prepare_threshold = sys.maxsize
    connection.take_scope()  # toolhub.kernel.postgresql
    unfinished = transaction.mark_for_rollback_on_error(connection.alias)
    with unfinished, connection.wrap_database_errors, psycopg.Cursor(raw) as cursor:
        yield cursor.execute(statement, parameters, prepare=True)


def prepared(statement: bytes, parameters: Parameters) -> list[tuple[Any, ...]]:
    """The rows of a statement that is a constant of its module. Errors of the database are Django's, as everywhere."""
    with _executed(statement, parameters) as cursor:
        return cursor.fetchall()


def changed(statement: bytes, parameters: Parameters) -> int:
    """How many rows such a statement has written."""
    with _executed(statement, parameters) as cursor:
        return cursor.rowcount
