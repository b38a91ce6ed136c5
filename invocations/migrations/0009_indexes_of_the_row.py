"""An earlier call with a request_id is found by an index of all rows, open calls by one of their own; two that repeat the beginning
of others are gone. Calls go on meanwhile: whatever takes the place of an index is there before it goes. What an interruption left
unfinished is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django.db.models.deletion
from django.db import migrations, models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps

TABLE = "invocations_invocation"
OPEN, OF_REQUEST = "invocation_open", "invocation_of_request"
BEGINNINGS = ("agent_id", "tenant_id")  # each once had an index of its own


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _make(schema_editor, OPEN, "(id) WHERE finished_at IS NULL")
    _make_instead(schema_editor, OF_REQUEST, "(agent_id, request_id)")
    for name in _repeated(schema_editor):
        _drop(schema_editor, name)


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for column in BEGINNINGS:
        _make(schema_editor, f"{TABLE}_{column}", f"({column})")
    _make_instead(schema_editor, OF_REQUEST, "(agent_id, request_id) WHERE NOT (request_id = '')")
    _drop(schema_editor, OPEN)


def _beside(schema_editor: BaseDatabaseSchemaEditor) -> str:
    return "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""


def _make(schema_editor: BaseDatabaseSchemaEditor, name: str, of: str) -> None:
    _drop(schema_editor, name)
    schema_editor.execute(f"CREATE INDEX {_beside(schema_editor)} {name} ON {TABLE} {of}")


def _make_instead(schema_editor: BaseDatabaseSchemaEditor, name: str, of: str) -> None:
    """SQLite renames no index; nobody else writes there meanwhile."""
    if schema_editor.connection.vendor != "postgresql":
        _make(schema_editor, name, of)
        return
    _make(schema_editor, f"{name}_new", of)
    _drop(schema_editor, name)
    schema_editor.execute(f"ALTER INDEX {name}_new RENAME TO {name}")


def _drop(schema_editor: BaseDatabaseSchemaEditor, name: str) -> None:
    schema_editor.execute(f"DROP INDEX {_beside(schema_editor)} IF EXISTS {name}")


def _repeated(schema_editor: BaseDatabaseSchemaEditor) -> list[str]:
    """Django names an index of a foreign key by a digest, so it is found by what it is of."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, TABLE)
    columns = [[column] for column in BEGINNINGS]
    return sorted(name for name, about in found.items() if about["index"] and about["columns"] in columns)


def _foreign_key(name: str) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="invocations",
        to=f"access.{name}",
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("access", "0006_capsules"),
        ("evidence", "0012_facts_of_forgetting"),
        ("invocations", "0008_requests"),
        ("registry", "0005_capsules"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(forwards, backwards)],
            state_operations=[
                migrations.RemoveIndex(model_name="invocation", name=OF_REQUEST),
                migrations.AlterField(model_name="invocation", name="agent", field=_foreign_key("agent")),
                migrations.AlterField(model_name="invocation", name="tenant", field=_foreign_key("tenant")),
                migrations.AddIndex(
                    model_name="invocation",
                    index=models.Index(fields=["agent", "request_id"], name=OF_REQUEST),
                ),
                migrations.AddIndex(
                    model_name="invocation",
                    index=models.Index(fields=["id"], name=OPEN, condition=models.Q(finished_at=None)),
                ),
            ],
        )
    ]
