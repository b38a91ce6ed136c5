from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("invocations", "0010_notified_at")]
    operations = [
        # The database knows no default, and SQLite would write the whole table anew.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="invocation", name="budget", field=models.JSONField(default=list)
                )
            ]
        )
    ]
