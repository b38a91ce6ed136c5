"""What identity providers may vouch for, and the connections that they have opened."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0002_entered_clients'),
    ]

    operations = [
        migrations.AddField(
            model_name='connection',
            name='issuer',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='connections', to='access.trustedissuer'),
        ),
        migrations.AlterField(
            model_name='connection',
            name='redirect_host',
            field=models.CharField(blank=True, max_length=255),
        ),
        migrations.AlterField(
            model_name='connectiontoken',
            name='kind',
            field=models.CharField(choices=[('access', 'Access'), ('refresh', 'Refresh'), ('id-jag', 'Assertion')], max_length=8),
        ),
        migrations.CreateModel(
            name='AssertionRule',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('scopes', models.JSONField(default=list)),
                ('tools', models.JSONField(blank=True, null=True)),
                ('token_minutes', models.PositiveIntegerField()),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField()),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assertion_rules', to='access.agent')),
                ('issuer', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='assertion_rule', to='access.trustedissuer')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('token_minutes__gte', 1)), name='assertion_rule_gives_tokens_that_last')],
            },
        ),
    ]
