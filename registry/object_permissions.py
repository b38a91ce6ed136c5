"""Objects of permissions: which tool or agent is meant, for those who may act on that one only.

Only a tool that the tenant publishes can be an exception: what another tenant shares is installed by the roles of the whole
tenant, whatever tool of one's own has the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.models import Agent
from access.object_permissions.rules import held_on
from kernel.problems import SchemaInvalid
from registry.models import Installation, InstallationState, Tool, ToolVersion

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal


def thing_named(kind: str, name: str, *, by: Principal) -> Any:
    """The tool that this tenant publishes, or its agent, of this name."""
    agents, tools = Agent.objects.filter(tenant_id=by.tenant_id), Tool.objects.visible_to(by)
    found: Any = agents.filter(name=name).first() if kind == "agent" else tools.filter(name=name).first()
    if found is None:
        message = (
            f"There is no agent {name[:80]} here." if kind == "agent" else f"No tool {name[:128]} is published here."
        )
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/thing", "message": message}]})
    return found


def _named(by: Principal, *, name: str) -> Tool | None:
    return Tool.objects.visible_to(by).filter(name=name).first()


def _of_version(by: Principal, *, version_id: UUID, **_: Any) -> Tool | None:
    rows = ToolVersion.objects.filter(pk=version_id, tool__tenant_id=by.tenant_id).select_related("tool")
    return next((row.tool for row in rows), None)


def _installed(by: Principal, *, name: str, **_: Any) -> Tool | None:
    """The tool that is installed by this name; :func:`access.object_permissions.rules.allowed_on` passes over another publisher's."""
    rows = Installation.objects.visible_to(by).filter(name=name).exclude(state=InstallationState.REMOVED)
    return next((row.tool for row in rows.select_related("tool")), None)


on_tool, on_version, on_installation = held_on(_named), held_on(_of_version), held_on(_installed)
