"""The playground: its agent, and what people have sent."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0009_playground_permission'),
        ('invocations', '0015_agent_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='Playground',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_by', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('agent', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='playground', to='access.agent')),
                ('tenant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='playground', to='access.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='PlaygroundConversation',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('person', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='PlaygroundMessage',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('token', models.UUIDField(unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='invocations.playgroundconversation')),
            ],
        ),
        migrations.CreateModel(
            name='PlaygroundSide',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('place', models.PositiveSmallIntegerField()),
                ('model', models.CharField(max_length=128)),
                ('reason', models.CharField(blank=True, max_length=64)),
                ('message', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='sides', to='invocations.playgroundmessage')),
                ('run', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='playground_side', to='invocations.agentrun')),
            ],
        ),
        migrations.AddIndex(
            model_name='playgroundconversation',
            index=models.Index(fields=['tenant', 'person', '-id'], name='conversation_newest'),
        ),
        migrations.AddConstraint(
            model_name='playgroundmessage',
            constraint=models.UniqueConstraint(fields=('conversation', 'number'), name='message_number_once'),
        ),
        migrations.AddConstraint(
            model_name='playgroundside',
            constraint=models.UniqueConstraint(fields=('message', 'place'), name='side_place_once'),
        ),
        migrations.AddConstraint(
            model_name='playgroundside',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('run__isnull', True), models.Q(('reason', ''), _negated=True)), models.Q(('reason', ''), ('run__isnull', False)), _connector='OR'), name='side_run_or_reason'),
        ),
    ]
