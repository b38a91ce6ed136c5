"""Wall of dependencies: who sees how far the dependencies of a version are, and who may write it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.db.utils import ProgrammingError

from kernel.database.tenancy import acting_for
from registry.models import Dependencies, DependencyState, Installation, Tool, VersionState
from tests.postgresql.test_wall_references import some_tool

if TYPE_CHECKING:
    from access.models import Tenant

LOCK = {"state": DependencyState.LOCKED, "lock_digest": "sha256:x"}


@pytest.mark.req("TOOLS-22", "SVC-9")
@pytest.mark.django_db
def test_whoever_installed_a_shared_tool_sees_it_and_only_its_publisher_writes_it(
    tenant: Tenant, foreign_tenant: Tenant
) -> None:
    tool, version = some_tool(tenant, "mine.tools.a")
    _, draft = some_tool(tenant, "mine.tools.b", VersionState.SUBMITTED)
    rows = [Dependencies.objects.create(version=each, **LOCK) for each in (version, draft)]
    with acting_for(foreign_tenant.pk):
        before = list(Dependencies.objects.all())
    Tool.objects.update(shared=True)
    Installation.objects.create(tenant=foreign_tenant, tool=tool, name=tool.name, version=version, changed_by="usr_1")

    with acting_for(foreign_tenant.pk):
        after = list(Dependencies.objects.all())
        written = Dependencies.objects.update(progress=["planted"])
    with acting_for(tenant.pk):
        mine = Dependencies.objects.update(progress=["x"])

    assert (before, after) == ([], rows[:1])
    assert (written, mine) == (0, 2)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_nobody_gives_another_tenants_version_dependencies(tenant: Tenant, foreign_tenant: Tenant) -> None:
    _, version = some_tool(tenant, "mine.tools.a")
    Tool.objects.update(shared=True)

    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        acting_for(foreign_tenant.pk),
        transaction.atomic(),
    ):
        Dependencies.objects.create(version=version, **LOCK)
