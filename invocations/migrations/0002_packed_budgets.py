"""Budgets of a call are packed in their column, which stays what it is; no call is looked for by its installation."""

import django.db.models.deletion
from django.db import migrations, models

import invocations.stored_budgets
from kernel.database.index_changes import drop_index


class Migration(migrations.Migration):
    stopped_first = ("worker",)
    atomic = False

    dependencies = [
        ('invocations', '0001_squashed'),
    ]

    operations = [
        # By hand: Django would make the table anew on SQLite, and look through all of it for its foreign keys on PostgreSQL.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop_index('invocations_invocation_installation_id_8741c2a1', 'invocations_invocation (installation_id)')
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='invocation',
                    name='budget',
                    field=invocations.stored_budgets.BudgetsField(default=list),
                ),
                migrations.AlterField(
                    model_name='invocation',
                    name='installation',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='registry.installation'),
                ),
            ],
        ),
    ]
