"""Prepared statements: how a statement of every call is run without being planned again.

Django binds parameters in the client, which keeps PostgreSQL from preparing a statement. These go by Django's own connection, inside
its transaction, and are prepared once a connection (:mod:`kernel.database.postgresql`, :mod:`kernel.database.sqlite`). Only such
statements are: for pages of lists the general plan is far worse than one made for the values at hand. Errors of the database are
Django's, as everywhere.

A statement has its places as ``%s`` or ``%(name)s``, and its values are Python's. What it finds is what the database has: where that
is not what Django would read, as of times and ids on SQLite, a :class:`kernel.database.rows.PreparedQuery` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from kernel.database.postgresql.base import DatabaseWrapper, LaterRows

Parameters = Mapping[str, Any] | Sequence[Any]


class StatementRunner(Protocol):
    """What both of our engines do with such statements."""

    def ask(self, *asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]: ...

    def change(self, statement: bytes, parameters: Parameters) -> int: ...

    def change_later(self, statement: bytes, parameters: Parameters) -> None: ...


def _connection() -> StatementRunner:
    return cast("StatementRunner", connections[DEFAULT_DB_ALIAS])


def fetch_prepared(statement: bytes, parameters: Parameters) -> list[tuple[Any, ...]]:
    """The rows of a statement that is a constant of its module."""
    (rows,) = _connection().ask((statement, parameters))
    return rows


def fetch_prepared_together(*asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
    """As :func:`fetch_prepared` for each, in one way there and back: none may depend on what another finds."""
    return _connection().ask(*asked)


def fetch_prepared_by_scope(*asked: tuple[str, bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
    """The same, each for the scope (:mod:`kernel.database.tenancy`) that stands before it. On PostgreSQL only."""
    return cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS]).ask_by_scope(*asked)


def execute_prepared(statement: bytes, parameters: Parameters) -> int:
    """How many rows such a statement has written."""
    return _connection().change(statement, parameters)


def execute_prepared_later(statement: bytes, parameters: Parameters) -> None:
    """Have it run before whatever follows in this transaction, sent together with that: its errors are raised there."""
    _connection().change_later(statement, parameters)


def execute_prepared_last(
    statement: bytes, parameters: Parameters, *, lock: bytes, of: Mapping[str, Sequence[Any]]
) -> None:
    """As :func:`execute_prepared_later`, behind whatever else goes with it. Of transactions that are committed as one
    (:func:`kernel.database.connections.share_commit`) all of these go last, behind the statement ``lock``, which takes the lists
    of all of them and locks in one order what each would have locked. On PostgreSQL only.
    """
    cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS]).change_last(statement, parameters, (lock, of))


def fetch_prepared_later(statement: bytes, parameters: Parameters) -> LaterRows:
    """The same for one that has rows, which are there then. On PostgreSQL only."""
    return cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS]).ask_later(statement, parameters)
