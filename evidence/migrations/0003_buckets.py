"""Tags that are in few leaves lie in buckets. What is indexed already stays in rows, where searches go on finding it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('evidence', '0002_packed_leaves'),
    ]

    operations = [
        migrations.CreateModel(
            name='PostingBucket',
            fields=[
                ('pk', models.CompositePrimaryKey('tenant_id', 'level', 'part', 'first', blank=True, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('level', models.SmallIntegerField()),
                ('part', models.IntegerField()),
                ('first', models.BigIntegerField()),
                ('content', models.BinaryField()),
            ],
        ),
        migrations.AddField(
            model_name='indexed',
            name='merged',
            field=models.BigIntegerField(default=0, db_default=0),
        ),
    ]
