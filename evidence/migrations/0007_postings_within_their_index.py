"""What a search reads of a tag stands side by side in the index, not a page of the table for each block. Searches and the keeper
go on meanwhile; an index that an interruption left unfinished is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps

WITH_PLACES = (
    "DROP INDEX CONCURRENTLY IF EXISTS posting_with_places",
    "CREATE UNIQUE INDEX CONCURRENTLY posting_with_places ON evidence_posting (tenant_id, tag, block) INCLUDE (places)",
)
WITHOUT_PLACES = (
    "DROP INDEX CONCURRENTLY IF EXISTS posting_without_places",
    "CREATE UNIQUE INDEX CONCURRENTLY posting_without_places ON evidence_posting (tenant_id, tag, block)",
)


def _with_key(made: tuple[str, ...], index: str) -> tuple[str, ...]:
    return (
        *made,
        "ALTER TABLE evidence_posting DROP CONSTRAINT evidence_posting_pkey, "
        f"ADD CONSTRAINT evidence_posting_pkey PRIMARY KEY USING INDEX {index}",
    )


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _run(schema_editor, _with_key(WITH_PLACES, "posting_with_places"))


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _run(schema_editor, _with_key(WITHOUT_PLACES, "posting_without_places"))


def _run(schema_editor: BaseDatabaseSchemaEditor, statements: tuple[str, ...]) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for statement in statements:
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evidence", "0006_capsules")]
    operations = [migrations.RunPython(forwards, backwards)]
