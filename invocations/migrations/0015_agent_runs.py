"""Agent runs: questions that the hub takes from call to call."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0008_models_permission'),
        ('evidence', '0019_agent_runs'),
        ('invocations', '0014_call_costs'),
        ('registry', '0009_model_circuits'),
    ]

    operations = [
        migrations.CreateModel(
            name='AgentRun',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('credential', models.JSONField(default=dict)),
                ('model', models.CharField(max_length=128)),
                ('limits', models.JSONField(default=dict)),
                ('state', models.CharField(choices=[('running', 'Running'), ('succeeded', 'Succeeded'), ('stopped', 'Stopped'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='running', max_length=16)),
                ('stop_reason', models.CharField(blank=True, choices=[('finished', 'The model has answered'), ('length', 'The answer was cut at its limit'), ('safety', 'The provider ended the answer for safety'), ('steps', 'Limit of turns'), ('money', 'Limit of cost'), ('seconds', 'Limit of time'), ('equal_calls', 'Limit of equal calls'), ('many_calls', 'Too many calls proposed at once'), ('refused', 'The model may not be asked'), ('model_failed', 'The model has failed'), ('outcome_unknown', 'The outcome of a tool is unknown'), ('cancelled', 'Cancelled'), ('hub_failed', 'The hub has failed')], max_length=20)),
                ('reason', models.CharField(blank=True, max_length=64)),
                ('request_id', models.CharField(max_length=64)),
                ('user_fingerprint', models.CharField(blank=True, max_length=80)),
                ('idempotency_key', models.CharField(blank=True, max_length=255)),
                ('question_fingerprint', models.CharField(max_length=80)),
                ('trace', models.JSONField(default=dict)),
                ('deadline_at', models.DateTimeField()),
                ('paused_at', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(null=True)),
                ('cancel_asked_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agent_runs', to='access.agent')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='agent_runs', to='access.tenant')),
                ('values_key', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evidence.subjectkey')),
            ],
        ),
        migrations.CreateModel(
            name='AgentRunStep',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('position', models.PositiveSmallIntegerField()),
                ('turn', models.PositiveSmallIntegerField()),
                ('role', models.CharField(choices=[('model', 'Model'), ('tool', 'Tool')], max_length=8)),
                ('tool', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('skipped', 'Skipped')], default='waiting', max_length=12)),
                ('tries', models.PositiveSmallIntegerField(default=1)),
                ('reason', models.CharField(blank=True, max_length=64)),
                ('reserved_micros', models.BigIntegerField(default=0)),
                ('cost_micros', models.BigIntegerField(default=0)),
                ('unpriced', models.PositiveSmallIntegerField(default=0)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='invocations.agentrun')),
            ],
        ),
        migrations.CreateModel(
            name='AgentRunEvent',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('model.asked', 'Model Asked'), ('model.answered', 'Model Answered'), ('tool.called', 'Tool Called'), ('tool.held', 'Tool Held'), ('tool.ended', 'Tool Ended'), ('run.ended', 'Run Ended')], max_length=16)),
                ('at', models.DateTimeField()),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='invocations.agentrun')),
                ('step', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='invocations.agentrunstep')),
            ],
        ),
        migrations.AddField(
            model_name='invocation',
            name='run_step',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='invocations.agentrunstep'),
        ),
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(condition=models.Q(('run_step__isnull', False)), fields=['run_step'], name='invocation_of_run'),
        ),
        migrations.AddIndex(
            model_name='agentrun',
            index=models.Index(fields=['tenant', '-id'], name='agent_run_newest'),
        ),
        migrations.AddIndex(
            model_name='agentrun',
            index=models.Index(condition=models.Q(('state', 'running')), fields=['id'], name='agent_run_going_on'),
        ),
        migrations.AddConstraint(
            model_name='agentrun',
            constraint=models.UniqueConstraint(condition=models.Q(('idempotency_key', ''), _negated=True), fields=('tenant', 'agent', 'user_fingerprint', 'idempotency_key'), name='agent_run_idempotency_key_once'),
        ),
        migrations.AddConstraint(
            model_name='agentrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at', None), ('state', 'running')), models.Q(models.Q(('state', 'running'), _negated=True), ('finished_at__isnull', False)), _connector='OR'), name='agent_run_finished_when_final'),
        ),
        migrations.AddConstraint(
            model_name='agentrunstep',
            constraint=models.UniqueConstraint(fields=('run', 'position'), name='run_step_position_once'),
        ),
        migrations.AddConstraint(
            model_name='agentrunevent',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='run_event_number_once'),
        ),
    ]
