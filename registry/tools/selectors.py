"""Tool selectors: the tools that a tenant publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from registry.discovery.selectors import build_filters, no_such_state, split_query
from registry.models import Tool, ToolKind, ToolState
from registry.problems import ToolIsModel, UnknownTool

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import ToolQuerySet


def find_tools(*, by: Principal, q: str = "", state: str = "", **filters: str) -> ToolQuerySet:
    """The tenant's tools under all given filters. ``q`` looks into id, display name, description and tags."""
    tools = Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).select_related("current")
    for word in split_query(q):
        tools = tools.filter(Q(name__contains=word) | Q(current__search__contains=word))
    tools = tools.filter(build_filters("current", **filters))
    if state and state not in ToolState.values:
        raise no_such_state(state)
    return tools.filter(state=state) if state else tools


def check_is_tool(tool: Tool) -> None:
    """What is done with a model is done where it was connected."""
    if tool.kind == ToolKind.MODEL:
        raise ToolIsModel(f"{tool.name} is a model.", remedy="Change or remove it among the models of its provider.")


def get_tool(name: str, *, tenant_id: UUID, locked: bool = False) -> Tool:
    """One of the tenant's own tools with its current version; ``locked`` until the transaction ends."""
    rows = Tool.objects.select_related("current").filter(tenant_id=tenant_id, name=name)
    tool = (rows.select_for_update(of=("self",)) if locked else rows).first()
    if tool is None:
        raise UnknownTool(
            f"This tenant publishes no tool {name[:128]}.",
            remedy="Only its publisher operates a tool; an installation is changed among the installed tools.",
        )
    return tool
