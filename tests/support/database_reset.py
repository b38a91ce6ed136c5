"""The database between tests: emptied where a test has written, and otherwise as its migrations made it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

from tests.support.append_only_triggers import rewritable

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# Made by migrating, the same for every test, and what others refer to by number.
KEPT = {"auth_permission", "django_content_type"}


def empty_tables(connection: BaseDatabaseWrapper) -> None:
    """Delete all rows but those of :data:`KEPT`.

    Django's own way truncates every table and does again all that follows a migration (permissions, triggers, row-level
    security), which took longer than most of the tests that commit.
    """
    tables = [table for table in connection.introspection.django_table_names(only_existing=True) if table not in KEPT]
    name = connection.ops.quote_name
    with ExitStack() as stack:
        stack.enter_context(rewritable(connection))
        stack.enter_context(transaction.atomic(using=connection.alias))
        cursor = stack.enter_context(connection.cursor())
        cursor.execute(
            " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {name(table)})" for table in tables)
        )
        written = [table for (table,) in cursor.fetchall()]
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger, no order of foreign keys
        for table in written:
            cursor.execute(f"DELETE FROM {name(table)}")


def teardown_of_tables(self: Any) -> None:
    """In the place of ``TransactionTestCase._fixture_teardown``."""
    for alias in self._databases_names(include_mirrors=False):
        empty_tables(connections[alias])
