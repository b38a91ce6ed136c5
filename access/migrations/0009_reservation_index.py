"""An index less on reservations: nothing looks for them by their tenant, and each call writes four of its entries."""

import django.db.models.deletion
from django.db import migrations, models

from kernel.database.index_changes import drop_index


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('access', '0008_expectations'),
    ]

    operations = [
        # By hand: Django would make the table anew on SQLite, and look through all of it for its foreign key on PostgreSQL.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop_index('access_reservation_tenant_id_ac9beeb6', 'access_reservation (tenant_id)'),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='reservation',
                    name='tenant',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant'),
                ),
            ],
        ),
    ]
