"""Clients that people enter by hand, and whose they are."""

import django.db.models.deletion
import kernel.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0001_squashed'),
        migrations.swappable_dependency(settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='connection',
            name='client_kind',
            field=models.CharField(choices=[('document', 'Document'), ('registered', 'Registered'), ('entered', 'Entered')], max_length=12),
        ),
        migrations.CreateModel(
            name='EnteredClient',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('entered_by', models.CharField(max_length=64)),
                ('entered_at', models.DateTimeField(auto_now_add=True)),
                ('application', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='entered', to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entered_clients', to='access.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='entered_client_of_tenant')],
            },
        ),
    ]
