"""A migration of its own: PostgreSQL changes no table in the transaction that has just changed its rows."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("access", "0009_reservation_tenant")]

    operations = [
        migrations.AlterField(
            "reservation",
            "tenant",
            models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.tenant"),
        ),
    ]
