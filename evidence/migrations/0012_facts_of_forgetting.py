"""What took stored values away is found without a look at all facts. Calls go on meanwhile; an index that an interruption left unfinished
is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations, models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    backwards(_apps, schema_editor)
    schema_editor.execute(
        f"CREATE INDEX {_beside(schema_editor)} fact_of_forgetting ON evidence_fact (tenant_id) "
        "WHERE kind IN ('retention.applied', 'erasure.asked')"
    )


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"DROP INDEX {_beside(schema_editor)} IF EXISTS fact_of_forgetting")


def _beside(schema_editor: BaseDatabaseSchemaEditor) -> str:
    return "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evidence", "0011_tries_of_verifications")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(forwards, backwards)],
            state_operations=[
                migrations.AddIndex(
                    model_name="fact",
                    index=models.Index(
                        fields=["tenant_id"],
                        name="fact_of_forgetting",
                        condition=models.Q(kind__in=["retention.applied", "erasure.asked"]),
                    ),
                )
            ],
        )
    ]
