"""Which tool is acted on at an address, for those who may act on that one only?

Only a tool that the tenant publishes can be an exception: what another tenant shares is installed by the roles of the whole
tenant, whatever tool of one's own has the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.exceptions import on
from registry.models import Installation, InstallationState, Tool, ToolVersion

if TYPE_CHECKING:
    from uuid import UUID

    from toolhub.kernel.principal import Principal


def _named(by: Principal, *, name: str) -> Tool | None:
    return Tool.objects.visible_to(by).filter(name=name).first()


def _of_version(by: Principal, *, version_id: UUID) -> Tool | None:
    rows = ToolVersion.objects.filter(pk=version_id, tool__tenant_id=by.tenant_id).select_related("tool")
    return next((row.tool for row in rows), None)


def _installed(by: Principal, *, name: str, **_: Any) -> Tool | None:
    """The tool that is installed by this name; :func:`access.exceptions.allowed_on` passes over another publisher's."""
    rows = Installation.objects.visible_to(by).filter(name=name).exclude(state=InstallationState.REMOVED)
    return next((row.tool for row in rows.select_related("tool")), None)


on_tool, on_version, on_installation = on(_named), on(_of_version), on(_installed)
