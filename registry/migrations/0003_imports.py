"""Imports: sources of tools, and the drafts that are made of them."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0004_connection_rules'),
        ('registry', '0002_remote_listings'),
    ]

    operations = [
        migrations.AddField(
            model_name='toolversion',
            name='drafted_by',
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('openapi', 'OpenAPI document'), ('remote', 'MCP server elsewhere'), ('package', 'MCP server of a package')], max_length=8)),
                ('group', models.CharField(max_length=120)),
                ('state', models.CharField(choices=[('listing', 'Listing'), ('failed', 'Failed'), ('read', 'Read')], max_length=8)),
                ('source', models.JSONField(default=dict)),
                ('content', models.BinaryField(default=bytes)),
                ('digest', models.CharField(blank=True, max_length=71)),
                ('offered', models.JSONField(default=list)),
                ('wanted', models.JSONField(default=list)),
                ('drafts', models.JSONField(default=list)),
                ('unproposed', models.PositiveIntegerField(default=0)),
                ('refusals', models.JSONField(default=list)),
                ('made', models.JSONField(default=dict)),
                ('failure', models.JSONField(default=dict)),
                ('progress', models.JSONField(default=list)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('worker', models.CharField(blank=True, max_length=100)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('started_by', models.CharField(max_length=64)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='imports', to='access.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['state', 'started_at'], name='import_by_state')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'group'), name='import_group_once_in_a_tenant')],
            },
        ),
    ]
