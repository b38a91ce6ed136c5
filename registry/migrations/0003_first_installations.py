from django.db import migrations


def copy_listed_fields(apps, schema_editor):
    """Versions of before this migration get the copies that lists filter by."""
    for version in apps.get_model("registry", "ToolVersion").objects.iterator():
        manifest = version.manifest
        tags, asked = manifest.get("tags", []), manifest.get("capabilities", {})
        version.display_name = manifest["display_name"]
        version.tags = f" {' '.join(tags)} " if tags else ""
        domains = sorted(name for name, value in asked.items() if value)
        version.domains = f" {' '.join(domains)} " if domains else ""
        version.search = " ".join([manifest["id"], manifest["display_name"], manifest["description"], *tags]).lower()
        version.save(update_fields=["display_name", "tags", "domains", "search"])


def install_at_home(apps, schema_editor):
    """Every tool that calls could get is installed in the tenant that publishes it."""
    installation = apps.get_model("registry", "Installation")
    for tool in apps.get_model("registry", "Tool").objects.exclude(current=None).iterator():
        installation.objects.get_or_create(
            tenant_id=tool.tenant_id,
            name=tool.name,
            defaults={"tool": tool, "version_id": tool.current_id, "changed_by": tool.state_changed_by},
        )


class Migration(migrations.Migration):

    dependencies = [("registry", "0002_installations")]

    operations = [
        migrations.RunPython(copy_listed_fields, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(install_at_home, migrations.RunPython.noop, elidable=True),
    ]
