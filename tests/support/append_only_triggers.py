"""Append-only evidence, taken down: to empty the tables between tests, and to tamper."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from evidence.append_only import triggers_for
from kernel.database.triggers import install_triggers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper


def _down(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        for each in triggers_for(connection.vendor):
            on = f" ON {each.table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {each.name}{on}")


@contextmanager
def rewritable(connection: Any = connection) -> Iterator[None]:
    """As somebody who owns the tables may: inside the block, facts and the log can be changed."""
    with transaction.atomic():
        _down(connection)
    try:
        yield
    finally:
        install_triggers(connection, triggers_for(connection.vendor))
