from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [
        ('invocations', '0007_limiters'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='invocation',
            index=models.Index(condition=~Q(request_id=''), fields=['agent', 'request_id'], name='invocation_of_request'),
        ),
    ]
