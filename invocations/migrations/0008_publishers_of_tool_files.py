"""Publishers of tool files: what tools of other tenants have kept stays theirs, now that the publisher is a part of its name."""

from typing import Any

from django.db import migrations

from kernel.ids import decode, encode


def name_publishers(apps: Any, _editor: Any) -> None:
    """By the call that has kept it. It is sealed anew under its new name when it is next changed."""
    rows, calls = apps.get_model("invocations", "ToolFiles").objects, apps.get_model("invocations", "Invocation").objects
    place = ("tenant_id", "group", "package", "scope", "owner")
    for id, changed_by, *values in rows.exclude(package__contains=" ").values_list("pk", "changed_by", *place):
        found = dict(zip(place, values, strict=True))
        call = calls.filter(pk=decode("inv", changed_by), tenant_id=found["tenant_id"])
        publisher = call.values_list("version__tool__tenant_id", flat=True).first()
        if publisher is None or publisher == found["tenant_id"]:
            continue
        named = f"{encode('ten', publisher)} {found['package']}"
        if not rows.filter(**found | {"package": named}).exists():  # what a call has kept since is the newer
            rows.filter(pk=id).update(package=named)


class Migration(migrations.Migration):
    dependencies = [
        ("invocations", "0007_tool_files_of_publishers"),
        ("registry", "0001_squashed"),
    ]

    operations = [
        migrations.RunPython(name_publishers, migrations.RunPython.noop),
    ]
