"""Models: a tool of another kind, and whom a tenant has connected to answer them."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("access", "0001_squashed"), ("registry", "0001_squashed")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="kind",
            field=models.CharField(choices=[("tool", "Tool"), ("model", "Model")], default="tool", max_length=8),
        ),
        migrations.CreateModel(
            name="ModelProvider",
            fields=[
                ("id", models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=40)),
                ("kind", models.CharField(max_length=40)),
                ("address", models.CharField(blank=True, max_length=500)),
                ("secret", models.CharField(blank=True, max_length=80)),
                ("settings", models.JSONField(default=dict)),
                ("data_classes", models.JSONField(default=list)),
                (
                    "state",
                    models.CharField(
                        choices=[("enabled", "Enabled"), ("paused", "Paused")], default="enabled", max_length=8
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("changed_by", models.CharField(max_length=64)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="model_providers",
                        to="access.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "name"), name="model_provider_name_once_in_a_tenant"
                    )
                ],
            },
        ),
    ]
