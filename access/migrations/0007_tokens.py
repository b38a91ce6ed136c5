"""A budget may be of tokens, beside money."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("access", "0001_squashed")]

    operations = [
        migrations.AlterField(
            model_name="budget",
            name="dimension",
            field=models.CharField(
                choices=[
                    ("calls", "Calls"),
                    ("bytes_in", "Bytes In"),
                    ("bytes_out", "Bytes Out"),
                    ("cpu_ms", "Cpu Ms"),
                    ("tokens", "Tokens"),
                    ("money", "Money"),
                    ("concurrency", "Concurrency"),
                    ("rate", "Rate"),
                ],
                max_length=12,
            ),
        ),
    ]
