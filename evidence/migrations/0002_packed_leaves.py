"""Leaves are packed in their column (:mod:`evidence.packed_leaves`), which stays what it is: no row is written anew."""

from django.db import migrations

import evidence.packed_leaves


class Migration(migrations.Migration):
    stopped_first = ("worker", "keeper")

    dependencies = [
        ('evidence', '0001_squashed'),
    ]

    operations = [
        # By hand: Django would make the table anew on SQLite.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='fact',
                    name='leaf',
                    field=evidence.packed_leaves.PackedLeafField(),
                ),
            ],
        ),
    ]
