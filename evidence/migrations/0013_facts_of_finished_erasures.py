"""An erasure goes on until it is finished, so the fact that says so is found with those of its asking. Calls go on meanwhile; an index
that an interruption left unfinished is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations, models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps

BEFORE = ["retention.applied", "erasure.asked"]
AFTER = [*BEFORE, "erasure.finished"]


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _make(schema_editor, AFTER)


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _make(schema_editor, BEFORE)


def _make(schema_editor: BaseDatabaseSchemaEditor, kinds: list[str]) -> None:
    beside = "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    among = ", ".join(f"'{kind}'" for kind in kinds)
    schema_editor.execute(f"DROP INDEX {beside} IF EXISTS fact_of_forgetting")
    schema_editor.execute(
        f"CREATE INDEX {beside} fact_of_forgetting ON evidence_fact (tenant_id) WHERE kind IN ({among})"
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evidence", "0012_facts_of_forgetting")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(forwards, backwards)],
            state_operations=[
                migrations.RemoveIndex(model_name="fact", name="fact_of_forgetting"),
                migrations.AddIndex(
                    model_name="fact",
                    index=models.Index(
                        fields=["tenant_id"],
                        name="fact_of_forgetting",
                        condition=models.Q(kind__in=AFTER),
                    ),
                ),
            ],
        )
    ]
