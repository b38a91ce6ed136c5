"""Which tools does `tools/list` show to an agent?

Those that are installed and enabled in its tenant and that a grant of its names, in the order of their ids. The cursor is the
last id seen, so a list that changes meanwhile neither skips nor repeats.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from mcp import MCPError
from mcp_types import INVALID_PARAMS, ListToolsResult, Tool, ToolAnnotations, ToolExecution
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from invocations.mcp.arrival import arrival_of
from registry.discovery import find_installed, granted_to, manifests_of
from registry.models import InstallationState, ToolState
from registry.showing_to_models import spec_of

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import PaginatedRequestParams

    from toolhub.kernel.principal import Principal
    from unitools.manifest import Manifest

PAGE_SIZE = 100
CALLABLE = Q(state=InstallationState.ENABLED, tool__state__in=(ToolState.ENABLED, ToolState.DEPRECATED))


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _name_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise MCPError(INVALID_PARAMS, "The cursor is not one that this list gave out.") from None


def shown(manifest: Manifest, *, modern: bool) -> Tool:
    """The tool as MCP has it. Before 2026-07-28 structured content is an object or nothing."""
    spec = spec_of(manifest)
    structured = modern or (spec.output_schema or {}).get("type") == "object"
    hints = spec.annotations
    return Tool(
        name=spec.name,
        title=spec.title or None,
        description=spec.description,
        input_schema=dict(spec.parameters),
        output_schema=dict(spec.output_schema) if spec.output_schema is not None and structured else None,
        annotations=ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
        execution=None if modern else ToolExecution(task_support="optional"),
    )


def page_after(name: str, *, by: Principal, modern: bool) -> ListToolsResult:
    """One page. It is filled up from the rows behind it, so that only the last one may be short."""
    tools: list[Tool] = []
    while True:
        rows = list(find_installed(by=by).filter(CALLABLE, name__gt=name).order_by("name")[:PAGE_SIZE])
        manifests = manifests_of(row.version_id for row in rows if row.version_id)
        for row in granted_to(by, rows, manifests):
            if len(tools) == PAGE_SIZE:
                return ListToolsResult(tools=tools, next_cursor=_cursor(tools[-1].name))
            assert row.version_id is not None
            tools.append(shown(manifests[row.version_id], modern=modern))
        if len(rows) < PAGE_SIZE:
            return ListToolsResult(tools=tools)
        name = rows[-1].name


async def list_tools(context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None) -> ListToolsResult:
    arrival, modern = arrival_of(context), context.protocol_version in MODERN_PROTOCOL_VERSIONS
    after = _name_of(params.cursor) if params is not None and params.cursor else ""
    return await arrival.within(lambda: page_after(after, by=arrival.by, modern=modern))
