"""Triggers: how rules that the database itself keeps get there, and how it is known that they still stand.

They are put up after each migration and not by one, as row level security is: on SQLite a table that is altered is made anew,
and loses its triggers without a word. On PostgreSQL each is ``ENABLE ALWAYS``, so that ``session_replication_role`` does not
switch it off, and carries a hash of its text as its argument, which every dump has: comments may be left out of one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

PREFIX = "toolhub_"
_THERE = (
    "SELECT c.relname, t.tgname, encode(substring(t.tgargs FROM 1 FOR 64), 'escape') "
    "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE starts_with(t.tgname, %s) AND t.tgenabled = 'A' AND c.relnamespace = 'public'::regnamespace"
)
_THERE_SQLITE = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'"


@dataclass(frozen=True, slots=True)
class Trigger:
    """``create`` makes it; ``function`` makes what it calls, on PostgreSQL."""

    table: str
    name: str
    create: str
    function: str = ""

    def note(self, vendor: str) -> str:
        if vendor != "postgresql":
            return self.create
        return hashlib.sha256(f"{self.function}\n{self.create}".encode()).hexdigest()


def missing_triggers(connection: BaseDatabaseWrapper, wanted: Sequence[Trigger]) -> list[Trigger]:
    """Those that are not there, are switched off, or say something else than this version of the hub."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_THERE, [PREFIX])
        else:
            cursor.execute(_THERE_SQLITE)
        there = {(table, name): note for table, name, note in cursor.fetchall()}
    return [each for each in wanted if there.get((each.table, each.name)) != each.note(connection.vendor)]


def install_triggers(connection: BaseDatabaseWrapper, wanted: Sequence[Trigger]) -> None:
    for each in missing_triggers(connection, wanted):
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            for statement in _statements(each, connection.vendor):
                cursor.execute(statement)


def _statements(trigger: Trigger, vendor: str) -> list[str]:
    if vendor != "postgresql":
        return [f"DROP TRIGGER IF EXISTS {trigger.name}", trigger.create]
    return [
        *([trigger.function] if trigger.function else []),
        f"DROP TRIGGER IF EXISTS {trigger.name} ON {trigger.table}",
        f"{trigger.create.removesuffix('()')}('{trigger.note(vendor)}')",
        f"ALTER TABLE {trigger.table} ENABLE ALWAYS TRIGGER {trigger.name}",
    ]
