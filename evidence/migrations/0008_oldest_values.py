"""What is older than a tenant keeps it is found without a look at all that is kept. Calls go on meanwhile; an index that an interruption
left unfinished is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations, models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    backwards(_apps, schema_editor)
    made = f"CREATE INDEX {_beside(schema_editor)} snapshot_oldest"
    schema_editor.execute(f"{made} ON evidence_snapshot (tenant_id, kind, created_at)")


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"DROP INDEX {_beside(schema_editor)} IF EXISTS snapshot_oldest")


def _beside(schema_editor: BaseDatabaseSchemaEditor) -> str:
    return "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evidence", "0007_postings_within_their_index")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(forwards, backwards)],
            state_operations=[
                migrations.AddIndex(
                    model_name="snapshot",
                    index=models.Index(fields=["tenant_id", "kind", "created_at"], name="snapshot_oldest"),
                )
            ],
        )
    ]
