"""Indexes of what most calls have none of hold only those that have it; the one of attempts by call was there twice."""

import django.db.models.deletion
from django.db import migrations, models

from kernel.database.index_changes import AddIndexBeside, drop_index

UNWANTED = {
    'invocations_invocation_callback_id_e0b66c4a': 'invocations_invocation (callback_id)',
    'invocations_invocation_chain_step_id_0ebbbb9b': 'invocations_invocation (chain_step_id)',
    'invocations_invocation_consent_id_d1911675': 'invocations_invocation (consent_id)',
    'invocations_attempt_invocation_id_d41f0daf': 'invocations_attempt (invocation_id)',
}


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('invocations', '0010_trials'),
    ]

    operations = [
        AddIndexBeside(
            model_name='invocation',
            index=models.Index(condition=models.Q(('chain_step__isnull', False)), fields=['chain_step'], name='invocation_of_chain'),
        ),
        AddIndexBeside(
            model_name='invocation',
            index=models.Index(condition=models.Q(('callback__isnull', False)), fields=['callback'], name='invocation_of_callback'),
        ),
        AddIndexBeside(
            model_name='invocation',
            index=models.Index(condition=models.Q(('consent__isnull', False)), fields=['consent'], name='invocation_of_consent'),
        ),
        # By hand: Django would make the tables anew on SQLite, and look through all of them for their foreign keys on PostgreSQL.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop_index(name, columns) for name, columns in UNWANTED.items()
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='attempt',
                    name='invocation',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='invocations.invocation'),
                ),
                migrations.AlterField(
                    model_name='invocation',
                    name='callback',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='invocations.callbackendpoint'),
                ),
                migrations.AlterField(
                    model_name='invocation',
                    name='chain_step',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='invocations.chainstep'),
                ),
                migrations.AlterField(
                    model_name='invocation',
                    name='consent',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='access.consent'),
                ),
            ],
        ),
    ]
