from django.db import migrations

from kernel.database.postgresql.expectations import FUNCTION


def make_function(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(FUNCTION, params=None)  # with a percent sign of its own


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0007_display_settings'),
    ]

    operations = [
        # Before what needs it is served; nothing of an older version is in its way.
        migrations.RunPython(make_function, migrations.RunPython.noop),
    ]
