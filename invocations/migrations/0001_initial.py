
import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('access', '0001_initial'),
        ('registry', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Invocation',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tool', models.CharField(max_length=128)),
                ('origin', models.CharField(choices=[('api', 'Api'), ('llm', 'Llm'), ('system', 'System')], default='api', max_length=8)),
                ('state', models.CharField(choices=[('received', 'Received'), ('denied', 'Denied'), ('held', 'Held'), ('queued', 'Queued'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('timed_out', 'Timed Out'), ('cancelled', 'Cancelled'), ('expired', 'Expired'), ('outcome_unknown', 'Outcome Unknown')], max_length=16)),
                ('dry_run', models.BooleanField(default=False)),
                ('request_id', models.CharField(max_length=64)),
                ('user_fingerprint', models.CharField(blank=True, max_length=80)),
                ('idempotency_key', models.CharField(blank=True, max_length=255)),
                ('arguments_fingerprint', models.CharField(max_length=80)),
                ('policy_version', models.CharField(blank=True, max_length=64)),
                ('profile', models.JSONField(null=True)),
                ('profile_hash', models.CharField(blank=True, max_length=71)),
                ('steps', models.JSONField(default=list)),
                ('trace', models.JSONField(default=dict)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('queue_deadline_at', models.DateTimeField(null=True)),
                ('rung_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('reason', models.CharField(blank=True, max_length=64)),
                ('ttl_seconds', models.PositiveIntegerField(null=True)),
                ('sources', models.JSONField(default=list)),
                ('output_digest', models.CharField(blank=True, max_length=71)),
                ('budget', models.JSONField(default=dict)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='access.agent')),
                ('consent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='access.consent')),
                ('grant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='access.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='access.tenant')),
                ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invocations', to='registry.toolversion')),
            ],
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('worker', models.CharField(max_length=120)),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('status', models.CharField(blank=True, max_length=24)),
                ('box', models.CharField(blank=True, max_length=64)),
                ('image', models.CharField(blank=True, max_length=80)),
                ('cpu_ms', models.FloatField(null=True)),
                ('max_rss_bytes', models.BigIntegerField(null=True)),
                ('invocation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='invocations.invocation')),
            ],
        ),
        migrations.CreateModel(
            name='Outbox',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('invocation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='invocations.invocation')),
            ],
        ),
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(fields=['tenant', '-id'], name='invocation_newest'),
        ),
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(fields=['tenant', 'tool', '-id'], name='invocation_of_tool'),
        ),
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(fields=['agent', '-id'], name='invocation_of_agent'),
        ),
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['state', 'lease_until'], name='invocation_by_lease'),
        ),
        migrations.AddConstraint(
            model_name='invocation',
            constraint=models.UniqueConstraint(condition=models.Q(('idempotency_key', ''), _negated=True), fields=('tenant', 'agent', 'user_fingerprint', 'tool', 'idempotency_key'), name='invocation_idempotency_key_once'),
        ),
        migrations.AddConstraint(
            model_name='invocation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('state__in', ['cancelled', 'denied', 'expired', 'failed', 'outcome_unknown', 'succeeded', 'timed_out'])), models.Q(models.Q(('state__in', ['cancelled', 'denied', 'expired', 'failed', 'outcome_unknown', 'succeeded', 'timed_out']), _negated=True), ('finished_at', None)), _connector='OR'), name='invocation_finished_when_final'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.UniqueConstraint(fields=('invocation', 'number'), name='attempt_number_once'),
        ),
    ]
