"""Files that tools keep from call to call, and by which key calls run one at a time."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Coalesce, NullIf

import kernel.ids


def copy_tool_names(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Calls that wait or run now keep each other out by the name of their tool, as before."""
    calls = apps.get_model("invocations", "Invocation").objects.using(schema_editor.connection.alias)
    calls.filter(serial=True, finished_at=None).update(serial_key=models.F("tool"))


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0004_connection_rules"),
        ("evidence", "0004_connection_rules"),
        ("invocations", "0004_unknown_outcomes"),
        ("registry", "0002_remote_listings"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolFiles",
            fields=[
                ("id", models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("group", models.CharField(max_length=128)),
                ("package", models.CharField(max_length=220)),
                ("scope", models.CharField(max_length=8)),
                ("owner", models.CharField(blank=True, max_length=128)),
                ("names", models.JSONField(default=list)),
                ("size", models.PositiveBigIntegerField()),
                ("fingerprint", models.CharField(max_length=80)),
                ("key_id", models.CharField(blank=True, max_length=64)),
                ("wrapped_key", models.BinaryField()),
                ("nonce", models.BinaryField()),
                ("ciphertext", models.BinaryField()),
                ("changed_by", models.CharField(max_length=64)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "subject_key",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evidence.subjectkey",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="tool_files", to="access.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "group", "package", "scope", "owner"), name="tool_files_once_for_each_owner"
                    )
                ]
            },
        ),
        migrations.AddField(
            model_name="invocation",
            name="serial_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=128),
        ),
        migrations.RunPython(copy_tool_names, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="invocation", name="invocation_serial_tool_runs_once"),
        migrations.AddConstraint(
            model_name="invocation",
            constraint=models.UniqueConstraint(
                models.F("tenant"),
                Coalesce(NullIf("serial_key", models.Value("")), "tool"),
                condition=models.Q(("serial", True), ("state", "running")),
                name="invocation_serial_key_runs_once",
            ),
        ),
    ]
