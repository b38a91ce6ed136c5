"""Index changes of migrations: made beside the table's work, which on PostgreSQL goes on meanwhile.

A migration of these alone, with ``atomic = False``: PostgreSQL does neither within a transaction. One that was broken off is run again
from its beginning, and leaves nothing half made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState


def _beside(editor: BaseDatabaseSchemaEditor) -> str:
    return "CONCURRENTLY" if editor.connection.vendor == "postgresql" else ""


class AddIndexBeside(migrations.AddIndex):
    """An index that is built while the table is written to."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # One whose building was broken off stands there, and is not used.
        schema_editor.execute(
            f"DROP INDEX {_beside(schema_editor)} IF EXISTS {schema_editor.quote_name(self.index.name)}"
        )
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            beside = {"concurrently": True} if _beside(schema_editor) else {}
            schema_editor.add_index(model, self.index, **beside)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        schema_editor.execute(
            f"DROP INDEX {_beside(schema_editor)} IF EXISTS {schema_editor.quote_name(self.index.name)}"
        )


class RemoveIndexBeside(migrations.RemoveIndex):
    """An index that goes, and comes again, while the table is written to."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        schema_editor.execute(f"DROP INDEX {_beside(schema_editor)} IF EXISTS {schema_editor.quote_name(self.name)}")

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        index = to_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        AddIndexBeside(self.model_name, index).database_forwards(app_label, schema_editor, from_state, to_state)


def drop_index(name: str, columns: str, *, unique: bool = False) -> migrations.RunPython:
    """An index that Django has named, where the state alone cannot say that it goes: ``columns`` is what makes it anew, after ON."""
    kind = "UNIQUE INDEX" if unique else "INDEX"

    def drop(_apps: object, editor: BaseDatabaseSchemaEditor) -> None:
        editor.execute(f"DROP INDEX {_beside(editor)} IF EXISTS {name}")

    def make(_apps: object, editor: BaseDatabaseSchemaEditor) -> None:
        drop(_apps, editor)
        editor.execute(f"CREATE {kind} {_beside(editor)} {name} ON {columns}")

    return migrations.RunPython(drop, make)
