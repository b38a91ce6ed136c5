"""What do other tenants of this hub share, and who are they?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from access.models import Tenant
from registry.models import Installation, InstallationState, Tool
from registry.visibility import in_order
from toolhub.kernel.tenancy import hub_wide

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from registry.models import ToolQuerySet
    from toolhub.kernel.principal import Principal


@hub_wide()
def publisher_slugs(tenant_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The short names of publishers. A tenant sees no other tenant but those whose tools it may install."""
    return dict(Tenant.objects.filter(pk__in=set(tenant_ids)).values_list("pk", "slug"))


def shared_tools(*, by: Principal, q: str = "", publisher: str = "") -> ToolQuerySet:
    """Enabled tools that others share; ``is_installed`` says whether this tenant has installed one already."""
    mine = Installation.objects.filter(tenant_id=by.tenant_id, tool_id=OuterRef("pk"))
    tools = (
        Tool.objects.filter(in_order(tool="", version="current"), shared=True)
        .exclude(tenant_id=by.tenant_id)
        .select_related("current")
        .annotate(is_installed=Exists(mine.exclude(state=InstallationState.REMOVED)))
    )
    if q:
        tools = tools.filter(current__search__contains=q.lower())
    if publisher:
        with hub_wide():
            found = list(Tenant.objects.filter(slug=publisher).values_list("pk", flat=True))
        tools = tools.filter(tenant_id__in=found)
    return tools
