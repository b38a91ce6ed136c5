"""Run profiles: what calls may reach leaves their rows, and is kept once for all that may reach the same. Steps are written shorter.

Rows of before keep their steps as they are: the same column holds both. On PostgreSQL the column of profiles stays too, unused: the web
of before serves while this runs, names it in each statement, and accepts calls whose profile is there alone
(:mod:`invocations.run_profiles.services`). The release after this one drops it.
"""

from typing import Any

from django.db import migrations, models
from django.db.models.functions import Cast

import invocations.stored_steps
from kernel.canonical import compute_digest


def keep_profiles(apps: Any, _editor: Any) -> None:
    """Where rows of one digest have more than one document, because somebody has changed one, the document of that digest is kept."""
    calls, kept = apps.get_model("invocations", "Invocation").objects, apps.get_model("invocations", "RunProfile").objects
    rows = calls.filter(profile__isnull=False).exclude(profile_hash="").order_by()
    first = models.Min(Cast("id", models.CharField()))  # PostgreSQL has no least UUID
    for tenant_id, digest, pk in rows.values_list("tenant_id", "profile_hash").annotate(first=first):
        document = rows.values_list("profile", flat=True).get(pk=pk)
        if compute_digest(document) != digest:
            others = rows.filter(tenant_id=tenant_id, profile_hash=digest).values_list("profile", flat=True).iterator()
            document = next((each for each in others if compute_digest(each) == digest), document)
        kept.create(tenant_id=tenant_id, digest=digest, document=document)


class RemoveFieldLater(migrations.RemoveField):
    """The code of now does without the column. On SQLite one process is the hub, so it goes at once."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [
        ("invocations", "0008_publishers_of_tool_files"),
    ]

    operations = [
        migrations.CreateModel(
            name="RunProfile",
            fields=[
                ("pk", models.CompositePrimaryKey("tenant_id", "digest", blank=True, editable=False, primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("digest", models.CharField(max_length=71)),
                ("document", models.JSONField()),
            ],
        ),
        migrations.RunPython(keep_profiles, migrations.RunPython.noop),
        RemoveFieldLater(model_name="invocation", name="profile"),
        migrations.AlterField(
            model_name="invocation",
            name="steps",
            field=invocations.stored_steps.StepsField(default=list),
        ),
    ]
