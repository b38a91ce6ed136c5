"""Prices: what a tenant says that its models cost, version by version."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0008_models_permission'),
        ('registry', '0006_models'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelPrices',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('document', models.JSONField()),
                ('reason', models.CharField(max_length=500)),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='model_prices', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'number'), name='model_prices_number_once_in_a_tenant')],
            },
        ),
    ]
