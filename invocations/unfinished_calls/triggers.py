"""Unfinished call triggers: how the database keeps a narrow row of each call that has begun and not ended.

By the database and not by the services, so that nobody who writes a call can forget it, a process of the release before included. On
PostgreSQL as the owner of the tables: who may write the call's row has passed the wall, and nobody else writes narrow ones.
Whoever writes a call has its row locked before the narrow one, so two never wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from kernel.database.triggers import Trigger, install_triggers, missing_triggers

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

CALLS, TABLE = "invocations_invocation", "invocations_unfinishedcall"
# Column of the narrow row -> what it is of the call's; the second ones may change.
_FIXED = {
    "id": "{call}.id",
    "tenant_id": "{call}.tenant_id",
}
_KEY = "COALESCE(NULLIF({call}.serial_key, ''), {call}.tool)"  # empty: accepted by a process from before the column
CHANGED = {
    "state": "{call}.state",
    "work_class": "{call}.work_class",
    "of_model": "substr({call}.tool, 1, 6) = 'model.'",
    "held": "{call}.state = 'held'",
    "serial_key": f"CASE WHEN {{call}}.serial THEN {_KEY} ELSE '' END",
    "running_key": f"CASE WHEN {{call}}.serial AND {{call}}.state = 'running' THEN {_KEY} ELSE '' END",
    "overdue_at": "CASE {call}.state WHEN 'queued' THEN {call}.queue_deadline_at WHEN 'held' THEN {call}.held_until "
    "WHEN 'running' THEN {call}.lease_until END",
    "notified_at": "{call}.notified_at",
}
_COLUMNS = {**_FIXED, **CHANGED}
_NAMED = ", ".join(_COLUMNS)
# Columns of the call from which a row is made, and its end.
_SOURCES = (
    "state, finished_at, work_class, tool, serial, serial_key, queue_deadline_at, held_until, lease_until, notified_at"
)


def _values(call: str) -> str:
    return ", ".join(value.format(call=call) for value in _COLUMNS.values())


def _insert(table: str) -> str:
    return f"INSERT INTO {table} ({_NAMED}) VALUES ({_values('NEW')})"  # noqa: S608  names only


_CHANGES = ", ".join(f"{column} = {value.format(call='NEW')}" for column, value in CHANGED.items())
_FUNCTION = "toolhub_keep_unfinished_call"
# Whoever may execute it may have a table of their own call it, and who puts it up has to: nobody does but the owner. What fires it
# needs no such right, so it asks where it is as well: restores may leave rights out. What it calls is PostgreSQL's own.
_KEEP = f"""
    CREATE OR REPLACE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $body$
    BEGIN
        IF TG_RELID <> 'public.{CALLS}'::regclass THEN
            RAISE insufficient_privilege USING MESSAGE = 'Narrow rows are kept of calls only.';
        ELSIF TG_OP = 'DELETE' THEN
            DELETE FROM public.{TABLE} WHERE id = OLD.id;
        ELSIF NEW.finished_at IS NOT NULL THEN
            DELETE FROM public.{TABLE} WHERE id = NEW.id;
        ELSE  -- with a new call too: a dump that is loaded may have brought the narrow row first
            UPDATE public.{TABLE} SET {_CHANGES} WHERE id = NEW.id;
            IF NOT FOUND THEN {_insert(f"public.{TABLE}")}; END IF;
        END IF;
        RETURN NULL;
    END $body$;
    REVOKE ALL ON FUNCTION {_FUNCTION}() FROM PUBLIC"""  # noqa: S608  names only
_POSTGRESQL = {
    "toolhub_unfinished_call_begins": f"AFTER INSERT ON {CALLS} FOR EACH ROW WHEN (NEW.finished_at IS NULL)",
    "toolhub_unfinished_call_changes": f"AFTER UPDATE OF {_SOURCES} ON {CALLS} FOR EACH ROW "
    "WHEN (NEW.finished_at IS NULL OR OLD.finished_at IS NULL)",
    "toolhub_unfinished_call_goes": f"AFTER DELETE ON {CALLS} FOR EACH ROW WHEN (OLD.finished_at IS NULL)",
}
_SQLITE = {
    "unfinished_call_begins": f"AFTER INSERT ON {CALLS} WHEN NEW.finished_at IS NULL "
    f"BEGIN {_insert(TABLE)} ON CONFLICT (id) DO UPDATE SET {_CHANGES}; END",
    "unfinished_call_changes": f"AFTER UPDATE OF {_SOURCES} ON {CALLS} WHEN NEW.finished_at IS NULL "  # noqa: S608
    f"BEGIN {_insert(TABLE)} ON CONFLICT (id) DO UPDATE SET {_CHANGES}; END",
    "unfinished_call_ends": f"AFTER UPDATE OF finished_at ON {CALLS} WHEN NEW.finished_at IS NOT NULL "  # noqa: S608
    f"BEGIN DELETE FROM {TABLE} WHERE id = NEW.id; END",
    "unfinished_call_goes": f"AFTER DELETE ON {CALLS} BEGIN DELETE FROM {TABLE} WHERE id = OLD.id; END",  # noqa: S608
}
# Of a table that was kept by nobody for a while: anew.
_FILL = (
    f"DELETE FROM {TABLE}",  # noqa: S608  names only
    f"INSERT INTO {TABLE} ({_NAMED}) SELECT {_values('i')} FROM {CALLS} i WHERE i.finished_at IS NULL",  # noqa: S608
)


def unfinished_call_triggers(vendor: str) -> list[Trigger]:
    if vendor == "postgresql":
        call = f"EXECUTE FUNCTION {_FUNCTION}()"
        return [
            Trigger(CALLS, name, f"CREATE TRIGGER {name} {when} {call}", _KEEP) for name, when in _POSTGRESQL.items()
        ]
    return [Trigger(CALLS, name, f"CREATE TRIGGER {name} {what}") for name, what in _SQLITE.items()]


def keep_unfinished_calls(connection: BaseDatabaseWrapper) -> bool:
    """Put the triggers up, or up again, and the rows with them: nobody writes a call between the two. False where all stood."""
    wanted = unfinished_call_triggers(connection.vendor)
    with transaction.atomic(using=connection.alias):
        if not missing_triggers(connection, wanted):
            return False
        install_triggers(connection, wanted)
        with connection.cursor() as cursor:
            for statement in _FILL:
                cursor.execute(statement)
    return True
