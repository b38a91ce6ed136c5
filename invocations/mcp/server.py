"""What does the hub say of itself to MCP clients, and who answers which method?

One server of the official SDK for both revisions: 2025-11-25 (and those before it) with `initialize`, 2026-07-28 without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CancelledNotificationParams

from invocations.mcp.arrival import arrival_of
from invocations.mcp.calling import call_tool, take_back
from invocations.mcp.listing import list_tools
from invocations.mcp.reading import request_id_of
from invocations.mcp.tasks import add_tasks
from invocations.models import FINAL, Invocation
from toolhub.kernel.version import HUB_VERSION

if TYPE_CHECKING:
    from uuid import UUID

    from mcp.server.context import ServerRequestContext

INSTRUCTIONS = (
    "Each tool is governed: a call may be denied, or may need a person's consent first. An error result says why (`reason`) and "
    "what helps (`remedy`); do that instead of calling again in the same way."
)
FRESH_MS = 60_000  # a list that is older may show a tool that was taken away; calling it is refused all the same


async def cancelled(context: ServerRequestContext[Any, Any], params: CancelledNotificationParams) -> None:
    """The client of a session takes back a call that it waits for."""
    arrival = arrival_of(context)
    if not arrival.session.id or params.request_id is None:
        return
    id = request_id_of(arrival.session.id, params.request_id)

    def waiting() -> UUID | None:
        rows = Invocation.objects.visible_to(arrival.by).exclude(state__in=FINAL)
        return rows.filter(request_id=id).values_list("pk", flat=True).first()

    found = await arrival.within(waiting)
    if found is not None:
        take_back(arrival, found)


def _no_schema(_: str) -> None:
    """The SDK would read the whole list before each call, to hold headers against arguments."""


def make_server() -> Server[Any]:
    server: Server[Any] = Server(
        "toolhub",
        version=HUB_VERSION,
        title="toolhub",
        instructions=INSTRUCTIONS,
        cache_hints={
            "tools/list": CacheHint(ttl_ms=FRESH_MS, scope="private"),
            "server/discover": CacheHint(ttl_ms=FRESH_MS, scope="private"),
        },
        get_tool_input_schema=_no_schema,
        on_list_tools=list_tools,
    )
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)  # which may answer with a task
    add_tasks(server)
    server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, cancelled)
    return server
