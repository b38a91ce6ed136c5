"""An index of the facts by which it is known who stands behind an agent."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evidence', '0006_imports'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('kind__in', ['agent.created', 'issuer.trusted', 'issuer.changed', 'identity.mapped', 'assertion_rule.set'])), fields=['tenant_id', 'kind'], name='fact_of_agent_making'),
        ),
    ]
