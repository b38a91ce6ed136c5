"""Run profiles: what calls may reach leaves their rows, and is kept once for all that may reach the same. Steps are written shorter.

Rows of before keep their steps as they are: the same column holds both.
"""

from typing import Any

from django.db import migrations, models

import invocations.stored_steps
from kernel.canonical import compute_digest


def keep_profiles(apps: Any, _editor: Any) -> None:
    """Where rows of one digest have more than one document, because somebody has changed one, the document of that digest is kept."""
    calls, kept = apps.get_model("invocations", "Invocation").objects, apps.get_model("invocations", "RunProfile").objects
    rows = calls.exclude(profile=None).exclude(profile_hash="").order_by().distinct()
    for tenant_id, digest, document in rows.values_list("tenant_id", "profile_hash", "profile").iterator():
        named = {"tenant_id": tenant_id, "digest": digest}
        if compute_digest(document) == digest:
            kept.filter(**named).delete()
        elif kept.filter(**named).exists():
            continue
        kept.create(**named, document=document)


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
        migrations.RemoveField(model_name="invocation", name="profile"),
        migrations.AlterField(
            model_name="invocation",
            name="steps",
            field=invocations.stored_steps.StepsField(default=list),
        ),
    ]
