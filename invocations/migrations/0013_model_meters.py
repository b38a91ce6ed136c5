"""Meters: what is learned of the figures that providers report."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0008_models_permission'),
        ('invocations', '0012_proposed_by'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelMeter',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('provider', models.CharField(max_length=40)),
                ('model', models.CharField(max_length=200)),
                ('figure', models.CharField(choices=[('input', 'Input'), ('output', 'Output'), ('money', 'Money')], max_length=8)),
                ('learned', models.JSONField(default=list)),
                ('window', models.JSONField(default=list)),
                ('most_per_mille', models.BigIntegerField(default=0)),
                ('most_excess', models.BigIntegerField(default=0)),
                ('differed_at', models.DateTimeField(null=True)),
                ('difference_per_mille', models.BigIntegerField(default=0)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='model_meters', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'provider', 'model', 'figure'), name='model_meter_once_for_a_figure')],
            },
        ),
    ]
