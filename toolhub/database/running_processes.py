"""Running processes: who is at work on this database, and whom a migration does not take beside it.

A migration that processes of before cannot work beside names them: ``stopped_first = ("worker", "keeper")`` on its class. A worker may
do the work of upkeep, so who names that names both. What it does not name may go on, as web does, until it is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from toolhub.process_names import ProcessName, parse_process_name

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# Everybody sees these columns of all sessions.
_SESSIONS = """
    SELECT application_name, array_agg(pid ORDER BY pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> current_setting('application_name')
    GROUP BY application_name ORDER BY application_name
"""


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """``sessions``: the numbers that PostgreSQL has of its connections."""

    name: ProcessName
    sessions: list[int]


def list_processes(connection: BaseDatabaseWrapper) -> list[RunningProcess]:
    """Of hubs on this database, but for this one."""
    with connection.cursor() as cursor:
        cursor.execute(_SESSIONS)
        named = [(parse_process_name(text), sessions) for text, sessions in cursor.fetchall()]
    return [RunningProcess(name, sessions) for name, sessions in named if name]


def find_roles_to_stop(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """By role the first migration that is to come and does not take it beside it. Of a new database none: nobody works on it yet."""
    applied = MigrationRecorder(connection).applied_migrations().keys()
    apps = {app for app, _ in applied}
    found: dict[str, str] = {}
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items()):
        if app in apps and (app, name) not in applied:
            for role in getattr(migration, "stopped_first", ()):
                found.setdefault(role, f"{app}.{name}")
    return found
