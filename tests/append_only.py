"""How do tests take down what keeps evidence as it is? To empty the tables between them, and to tamper."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from evidence.append_only import triggers_for
from toolhub.kernel.triggers import put_up_triggers

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
        put_up_triggers(connection, triggers_for(connection.vendor))


def flushes_evidence(flush: Any) -> Any:
    """Django's way of emptying all tables between tests, for which the triggers are taken down."""

    def execute_sql_flush(self: Any, sql_list: list[str]) -> None:
        with rewritable(self.connection):
            flush(self, sql_list)

    return execute_sql_flush
