"""Which tools does a tenant publish?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q

from registry.discovery import MAX_WORDS
from registry.models import Tool, ToolVersion
from registry.problems import UnknownTool

if TYPE_CHECKING:
    from uuid import UUID

    from registry.models import ToolQuerySet
    from toolhub.kernel.principal import Principal


def find_tools(
    *,
    by: Principal,
    q: str = "",
    group: str = "",
    tag: str = "",
    safety_class: str = "",
    side_effect: str = "",
    capability: str = "",
    state: str = "",
) -> ToolQuerySet:
    """The tenant's tools under all given filters. ``q`` looks into id, display name and description."""
    tools = Tool.objects.visible_to(by).select_related("current")
    for word in q.lower().split()[:MAX_WORDS]:
        tools = tools.filter(Q(name__contains=word) | Q(current__search__contains=word))
    if group:
        tools = tools.filter(name__startswith=f"{group}.")
    if tag:
        tools = tools.filter(current__tags__contains=f" {tag} ")
    if safety_class:
        tools = tools.filter(current__safety_class=safety_class)
    if side_effect:
        tools = tools.filter(current__side_effect=side_effect)
    if capability:
        tools = tools.filter(current__domains__contains=f" {capability} ")
    if state:
        tools = tools.filter(state=state)
    return tools


# Manifests never change, so what was decoded once is kept; it is most of the cost of looking up a tool.
_manifests: dict[UUID, dict[str, Any]] = {}
MAX_MANIFESTS = 2048


def _fill_manifest(version: ToolVersion) -> None:
    if version.pk not in _manifests:
        if len(_manifests) >= MAX_MANIFESTS:
            _manifests.clear()
        _manifests[version.pk] = version.manifest  # deferred: one query
    else:
        version.manifest = _manifests[version.pk]


def get_tool(name: str, *, tenant_id: UUID) -> Tool:
    tool = (
        Tool.objects.select_related("current").defer("current__manifest").filter(tenant_id=tenant_id, name=name).first()
    )
    if tool is None:
        raise UnknownTool(
            f"There is no tool {name[:128]} here.",
            remedy="List the tools with GET /api/v1/tools and use an id from there.",
        )
    if tool.current is not None:
        _fill_manifest(tool.current)
    return tool
