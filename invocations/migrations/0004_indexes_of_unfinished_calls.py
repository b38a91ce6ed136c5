"""Indexes of what changes while a call waits and runs go from the wide table, and its pages keep room for such changes."""

from typing import Any

from django.db import migrations

from kernel.database.index_changes import RemoveIndexBeside, drop_index

UNWANTED = (
    "invocation_unknown_outcome",
    "invocation_open",
    "invocation_held_for_account",
    "invocation_by_lease",
    "invocation_at_work",
)
# Of each page, in percent, what new rows fill. A version of most calls fits into the rest; where it would not, PostgreSQL first takes out
# those that nobody sees any more.
FILLED = {"invocations_invocation": 80, "invocations_unfinishedcall": 60}


def leave_room(_apps: Any, editor: Any) -> None:
    if editor.connection.vendor == "postgresql":
        for table, percent in FILLED.items():
            editor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")


def leave_none(_apps: Any, editor: Any) -> None:
    if editor.connection.vendor == "postgresql":
        for table in FILLED:
            editor.execute(f"ALTER TABLE {table} RESET (fillfactor)")


class Migration(migrations.Migration):
    stopped_first = ("worker", "upkeep")
    atomic = False

    dependencies = [
        ("invocations", "0003_unfinished_calls"),
    ]

    operations = [
        *(RemoveIndexBeside(model_name="invocation", name=name) for name in UNWANTED),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop_index(
                    "invocation_serial_key_runs_once",
                    "invocations_invocation (tenant_id, (COALESCE(NULLIF(serial_key, ''), tool))) WHERE serial AND state = 'running'",
                    unique=True,
                )
            ],
            state_operations=[
                migrations.RemoveConstraint(model_name="invocation", name="invocation_serial_key_runs_once"),
            ],
        ),
        migrations.RunPython(leave_room, leave_none),
    ]
