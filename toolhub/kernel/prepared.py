"""How does PostgreSQL run a statement of every call without planning it again?

Django binds parameters in the client, which keeps a statement from being prepared. A cursor with server-side binding on
Django's own connection, inside its transaction, can prepare it, once a connection. Only these statements are: for pages of
lists the general plan is far worse than one made for the values at hand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import psycopg
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Mapping


def prepared(statement: bytes, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement that is a constant of its module. Errors of the database are Django's, as everywhere."""
    connection.ensure_connection()
    raw = connection.connection
    if raw.prepare_threshold is None:  # Django's default; psycopg prepares nothing then, not even what asks for it
        raw.prepare_threshold = sys.maxsize
    connection.take_scope()  # type: ignore[attr-defined]  # toolhub.kernel.postgresql
    with connection.wrap_database_errors, psycopg.Cursor(raw) as cursor:
        return cursor.execute(statement, parameters, prepare=True).fetchall()
