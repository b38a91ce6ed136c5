"""Pages of tool files: does an operator see what tools keep, and empty it, and nobody else?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from evidence.models import Fact
from invocations.tool_files.models import ToolFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


def keep(tenant: Tenant, group: str) -> ToolFiles:
    return ToolFiles.objects.create(
        tenant=tenant,
        group=group,
        package="a",
        scope="tenant",
        names=[["/data/notes.db", 8192]],
        size=8192,
        fingerprint="hmac-sha256:00",
        wrapped_key=b"",
        nonce=b"",
        ciphertext=b"",
        changed_by="inv_x",
    )


@pytest.mark.req("BRING-2")
def test_an_operator_sees_what_is_kept_and_empties_it(
    operator: Person, tenant: Tenant, foreign_tenant: Tenant, enable: Callable[..., Tool]
) -> None:
    tool = enable()
    group = tool.name.rpartition(".")[0]
    row, foreign = keep(tenant, group), keep(foreign_tenant, group)
    client = operator.client()

    page = client.get(reverse("tool_files", args=[tool.name]))
    denied = client.post(reverse("tool_files_empty", args=[tool.name, foreign.pk]))
    emptied = client.post(reverse("tool_files_empty", args=[tool.name, row.pk]))

    assert page.content.decode().count("/data/notes.db") == 1
    assert denied.status_code == 404
    assert emptied.status_code == 302
    assert list(ToolFiles.objects.all()) == [foreign]
    assert Fact.objects.get(kind="file.removed").subject == row.wire_id
    assert "Nothing is kept" in client.get(reverse("tool_files", args=[tool.name])).content.decode()


@pytest.mark.req("BRING-2")
def test_who_may_not_manage_files_sees_none(auditor: Person, tenant: Tenant, enable: Callable[..., Tool]) -> None:
    tool = enable()
    row = keep(tenant, tool.name.rpartition(".")[0])

    assert auditor.client().get(reverse("tool_files", args=[tool.name])).status_code == 403
    assert auditor.client().post(reverse("tool_files_empty", args=[tool.name, row.pk])).status_code == 403
