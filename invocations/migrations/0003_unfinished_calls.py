"""Unfinished calls: what waits and runs gets a narrow row each, which the database itself keeps from now on."""

from typing import Any

from django.db import migrations, models

from invocations.unfinished_calls.triggers import keep_unfinished_calls, unfinished_call_triggers


def keep_rows(_apps: Any, editor: Any) -> None:
    """Here and not after all migrations: the next one drops the index by which those that have not ended are found, and the web of
    before accepts calls meanwhile.
    """
    keep_unfinished_calls(editor.connection)


def take_triggers_down(_apps: Any, editor: Any) -> None:
    vendor = editor.connection.vendor
    for each in unfinished_call_triggers(vendor):
        editor.execute(f"DROP TRIGGER {each.name}" + (f" ON {each.table}" if vendor == "postgresql" else ""))


class Migration(migrations.Migration):
    stopped_first = ("worker", "upkeep")

    dependencies = [
        ("invocations", "0002_packed_budgets"),
    ]

    operations = [
        migrations.CreateModel(
            name="UnfinishedCall",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("state", models.CharField(max_length=16)),
                ("work_class", models.CharField(max_length=8)),
                ("of_model", models.BooleanField()),
                ("held", models.BooleanField()),
                ("serial_key", models.CharField(blank=True, max_length=128)),
                ("running_key", models.CharField(blank=True, max_length=128)),
                ("overdue_at", models.DateTimeField(null=True)),
                ("notified_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("held", False)), fields=["id"], name="unfinished_call_not_held")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("running_key", ""), _negated=True),
                        fields=("tenant_id", "running_key"),
                        name="unfinished_call_serial_key_runs_once",
                    )
                ],
            },
        ),
        migrations.RunPython(keep_rows, take_triggers_down),
    ]
