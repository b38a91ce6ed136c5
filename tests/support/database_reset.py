"""The database between tests: emptied where a test has written, and otherwise as its migrations made it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

from evidence.append_only import triggers_for
from kernel.database.triggers import install_triggers

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# Made by migrating, the same for every test, and what others refer to by number.
KEPT = {"auth_permission", "django_content_type"}
DOWN = {"postgresql": "ALTER TABLE {0.table} DISABLE TRIGGER {0.name}", "sqlite": "DROP TRIGGER {0.name}"}
UP = {"postgresql": "ALTER TABLE {0.table} ENABLE ALWAYS TRIGGER {0.name}", "sqlite": "{0.create}"}


def empty_tables(connection: BaseDatabaseWrapper) -> None:
    """Delete all rows but those of :data:`KEPT`.

    Django's own way truncates every table and does again all that follows a migration (permissions, triggers, row-level
    security), which took longer than most of the tests that commit. Changes of the schema do, too: only triggers that stand
    before rows to delete are taken down.
    """
    vendor = connection.vendor
    triggers = triggers_for(vendor)
    install_triggers(connection, triggers)  # a test may have taken some down
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(_find_written(connection.alias))
        written = {table for (table,) in cursor.fetchall()}
        in_the_way = [each for each in triggers if each.table in written and " BEFORE DELETE ON " in each.create]
        if vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")  # no other trigger, no order of foreign keys
        for each in in_the_way:
            cursor.execute(DOWN[vendor].format(each))
        for table in written:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
        for each in in_the_way:
            cursor.execute(UP[vendor].format(each))


@cache
def _find_written(alias: str) -> str:
    """The statement that names the tables with rows; all tables were there before the first test."""
    connection = connections[alias]
    tables = set(connection.introspection.django_table_names(only_existing=True)) - KEPT
    name = connection.ops.quote_name
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {name(table)})" for table in sorted(tables)
    )


def teardown_of_tables(self: Any) -> None:
    """In the place of ``TransactionTestCase._fixture_teardown``."""
    for alias in self._databases_names(include_mirrors=False):
        empty_tables(connections[alias])
