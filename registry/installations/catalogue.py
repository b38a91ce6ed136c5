"""Shared catalogue: what other tenants of this hub share, and who they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef
from django.utils import timezone

from access.models import Tenant
from kernel.database.tenancy import hub_wide
from registry.discovery.visibility import halted_filter, in_order, version_halts
from registry.models import Installation, InstallationState, Tool
from unitools.deprecations import find_tool_deprecation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import ToolQuerySet


@hub_wide()
def publisher_slugs(tenant_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The short names of publishers. A tenant sees no other tenant but those whose tools it may install."""
    return dict(Tenant.objects.filter(pk__in=set(tenant_ids)).values_list("pk", "slug"))


@hub_wide()
def _halted_tools() -> list[UUID]:
    """Shared tools that their publisher has stopped. Who has installed none of a publisher's tools does not see its kill switches."""
    shared = Tool.objects.filter(shared=True)
    versions = version_halts(publishers=shared.values("tenant_id")).only("tenant_id", "target")
    stopped = shared.filter(halted_filter(tool="", version="current", versions=versions))
    return list(stopped.values_list("pk", flat=True))


def not_gone(tools: Iterable[Tool]) -> list[Tool]:
    """Without those whose current version announced an end that has come. No column says it: it is asked of a page."""
    today = timezone.now().date()
    return [tool for tool in tools if tool.current and not find_tool_deprecation(tool.current.view, today=today)]


def shared_tools(*, by: Principal, q: str = "", publisher: str = "") -> ToolQuerySet:
    """Enabled tools that others share and have not stopped; ``is_installed`` says whether this tenant has installed one already."""
    mine = Installation.objects.filter(tenant_id=by.tenant_id, tool_id=OuterRef("pk"))
    tools = (
        Tool.objects.filter(in_order(tool="", version="current"), shared=True)
        .exclude(tenant_id=by.tenant_id)
        .exclude(pk__in=_halted_tools())
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
