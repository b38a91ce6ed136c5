from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("invocations", "0001_squashed")]
    operations = [
        migrations.RenameField(model_name="invocation", old_name="rung_at", new_name="notified_at"),
        migrations.RemoveIndex(model_name="replay", name="replay_open"),
        migrations.RenameField(model_name="replay", old_name="rung_at", new_name="notified_at"),
        migrations.AddIndex(
            model_name="replay",
            index=models.Index(
                condition=models.Q(("state__in", ["queued", "running"])), fields=["notified_at"], name="replay_open"
            ),
        ),
    ]
