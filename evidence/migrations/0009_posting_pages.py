from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evidence", "0008_log_archives"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClosedRange",
            fields=[
                ("pk", models.CompositePrimaryKey("tenant_id", "first_block", blank=True, editable=False, primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("first_block", models.IntegerField()),
                ("last_block", models.IntegerField()),
                ("tag", models.BinaryField(default=bytes)),
                ("block", models.IntegerField(default=0)),
                ("closed_at", models.DateTimeField()),
                ("is_packed", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="PostingPage",
            fields=[
                ("pk", models.CompositePrimaryKey("tenant_id", "first_block", "tag", "block", blank=True, editable=False, primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("first_block", models.IntegerField()),
                ("tag", models.BinaryField()),
                ("block", models.IntegerField()),
                ("content", models.BinaryField()),
            ],
        ),
    ]
