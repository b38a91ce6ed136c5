"""Wall of capsules: who sees the code that a tenant uploaded and whose signature it has, and who may write it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.db.utils import ProgrammingError

from kernel.database.tenancy import acting_for
from registry.models import Capsule, Installation, PublisherKey, PublishingRules, Tool, ToolVersion
from tests.postgresql.test_wall_references import capsule_of, saved, some_tool

if TYPE_CHECKING:
    from access.models import Tenant

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-22", "TOOLS-32")
def test_whoever_installed_a_version_sees_its_capsule_and_its_signer_and_nothing_else_of_the_publisher(
    tenant: Tenant, foreign_tenant: Tenant
) -> None:
    keys = [
        saved(PublisherKey(tenant=tenant, name=name, key_id=name, public_key="x", added_by="usr_1")) for name in "ab"
    ]
    installed, other = (saved(capsule_of(tenant, f"sha256:{key.name}", key)) for key in keys)
    tool, version = some_tool(tenant, "mine.tools.a")
    ToolVersion.objects.filter(pk=version.pk).update(capsule=installed)
    _, not_installed = some_tool(tenant, "mine.tools.b")
    ToolVersion.objects.filter(pk=not_installed.pk).update(capsule=other)
    PublishingRules.objects.create(tenant=tenant, changed_by="usr_1")
    with acting_for(foreign_tenant.pk):
        before = [*Capsule.objects.all(), *PublisherKey.objects.all()]
    Tool.objects.update(shared=True)
    Installation.objects.create(tenant=foreign_tenant, tool=tool, name=tool.name, version=version, changed_by="usr_1")

    with acting_for(foreign_tenant.pk):
        after = [*Capsule.objects.all(), *PublisherKey.objects.all(), *PublishingRules.objects.all()]
        written = (Capsule.objects.update(content=b"planted"), PublisherKey.objects.update(name="planted"))
        planted = PublisherKey.objects.update(revoked_at=None)
    with acting_for(tenant.pk):
        mine = Capsule.objects.count(), PublisherKey.objects.count(), PublishingRules.objects.count()

    assert (before, after) == ([], [installed, keys[0]])
    assert (*written, planted) == (0, 0, 0)
    assert mine == (2, 2, 1)


@pytest.mark.req("TOOLS-22")
def test_nobody_gives_another_tenant_a_key(tenant: Tenant, foreign_tenant: Tenant) -> None:
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        acting_for(foreign_tenant.pk),
        transaction.atomic(),
    ):
        PublisherKey.objects.create(tenant=tenant, name="k", key_id="0", public_key="x", added_by="usr_1")
