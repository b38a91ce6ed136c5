from django.db import migrations


def name_ranges(apps, schema_editor):
    """What was a major version becomes the range of everything compatible with it."""
    consents = apps.get_model("access", "Consent").objects
    for major in set(consents.values_list("tool_major", flat=True)):
        consents.filter(tool_major=major).update(versions=f"^{major}")


class Migration(migrations.Migration):

    dependencies = [("access", "0002_governance")]

    operations = [
        migrations.RunPython(name_ranges, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField(model_name="consent", name="tool_major"),
    ]
