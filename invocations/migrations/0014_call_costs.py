"""Call costs: what each call that took money has taken."""
import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0008_models_permission'),
        ('invocations', '0013_model_meters'),
    ]

    operations = [
        migrations.CreateModel(
            name='CallCost',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tool', models.CharField(max_length=128)),
                ('micros', models.BigIntegerField(null=True)),
                ('currency', models.CharField(max_length=3)),
                ('input_tokens', models.BigIntegerField(default=0)),
                ('output_tokens', models.BigIntegerField(default=0)),
                ('made_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.agent')),
                ('invocation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='cost', to='invocations.invocation')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-made_at'], name='call_cost_newest')],
            },
        ),
    ]
