"""MCP server: what the hub says of itself to MCP clients, and who answers which method.

One server of the official SDK for both revisions: 2025-11-25 (and those before it) with `initialize`, 2026-07-28 without.
"""

from __future__ import annotations

from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams

from invocations.mcp.artifact_resources import list_artifact_templates, list_artifacts, read_resource
from invocations.mcp.list_streams import listen_for_changes
from invocations.mcp.mcp_tasks import register_task_handlers
from invocations.mcp.tool_calls import call_tool, count_unreadable
from invocations.mcp.tool_list import list_tools
from kernel.version import HUB_VERSION

INSTRUCTIONS = (
    "Each tool is governed: a call may be denied, or may need a person's consent first. An error result says why (`reason`) and "
    "what helps (`remedy`); do that instead of calling again in the same way."
)
FRESH_MS = 60_000  # a list that is older may show a tool that was taken away; calling it is refused all the same


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
            "resources/list": CacheHint(ttl_ms=0, scope="private"),  # the next call may leave another one
            "resources/templates/list": CacheHint(ttl_ms=FRESH_MS, scope="private"),
            "resources/read": CacheHint(ttl_ms=FRESH_MS, scope="private"),  # one that was removed is not to be kept
        },
        get_tool_input_schema=_no_schema,
        on_list_tools=list_tools,
        on_subscriptions_listen=listen_for_changes,
        on_list_resources=list_artifacts,
        on_list_resource_templates=list_artifact_templates,
        on_read_resource=read_resource,
    )
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)  # which may answer with a task
    server.middleware.append(count_unreadable)
    register_task_handlers(server)
    return server
