"""A reservation names its tenant: it is written in the statement that makes its window, so no policy could look there."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import OuterRef, Subquery


def name_the_tenants(apps, schema_editor):
    BudgetWindow = apps.get_model("access", "BudgetWindow")
    Reservation = apps.get_model("access", "Reservation")
    window = BudgetWindow.objects.filter(pk=OuterRef("window_id"))
    Reservation.objects.update(tenant=Subquery(window.values("budget__tenant")[:1]))


class Migration(migrations.Migration):
    dependencies = [("access", "0008_people")]

    operations = [
        migrations.AddField(
            "reservation",
            "tenant",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.tenant"
            ),
        ),
        migrations.RunPython(name_the_tenants, migrations.RunPython.noop),
    ]
