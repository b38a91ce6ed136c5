"""Which tools does somebody find, and which version does a call get?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils import timezone

from registry.models import Tool, ToolState, ToolVersion
from registry.problems import ToolNotEnabled, ToolPaused, ToolRetired, UnknownTool

if TYPE_CHECKING:
    from uuid import UUID

    from registry.models import ToolQuerySet
    from toolhub.kernel.principal import Principal


FILTERS = ("q", "group", "tag", "safety_class", "side_effect", "capability", "state")


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
    if q:
        tools = tools.filter(
            Q(name__icontains=q)
            | Q(current__manifest__display_name__icontains=q)
            | Q(current__manifest__description__icontains=q)
        )
    if group:
        tools = tools.filter(name__startswith=f"{group}.")
    if tag:
        tools = tools.filter(current__manifest__tags__icontains=f'"{tag}"')
    if safety_class:
        tools = tools.filter(current__safety_class=safety_class)
    if side_effect:
        tools = tools.filter(current__side_effect=side_effect)
    if capability:
        tools = tools.filter(current__manifest__capabilities__has_key=capability)
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


def check_callable(tool: Tool) -> ToolVersion:
    """The version that a call gets now; raises what is in the way."""
    if tool.state == ToolState.PAUSED:
        raise ToolPaused(
            f"{tool.name} is paused since {tool.state_changed_at:%Y-%m-%d %H:%M} UTC.",
            details={"since": tool.state_changed_at.isoformat()},
            remedy="Wait until an operator has enabled it again, or use another tool.",
        )
    if tool.state == ToolState.REGISTERED or tool.current is None:
        raise ToolNotEnabled(
            f"{tool.name} has not been enabled yet.", remedy="Ask an operator to have it reviewed and enabled."
        )
    if tool.state == ToolState.DEPRECATED and tool.sunset_on and tool.sunset_on < timezone.now().date():
        raise ToolRetired(
            f"{tool.name} was withdrawn on {tool.sunset_on}.", details={"sunset_on": tool.sunset_on.isoformat()}
        )
    return tool.current
