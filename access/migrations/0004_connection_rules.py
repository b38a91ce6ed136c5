"""What a tenant says of all its connections."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0003_assertion_rules'),
    ]

    operations = [
        migrations.CreateModel(
            name='ConnectionRule',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('days', models.PositiveIntegerField(blank=True, null=True)),
                ('idle_days', models.PositiveIntegerField(blank=True, null=True)),
                ('token_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('sign_in_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField()),
                ('tenant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='connection_rule', to='access.tenant')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('days__gte', 1), ('days', None), _connector='OR'), name='connection_rule_lets_connections_last_a_day')],
            },
        ),
    ]
