"""Tool list: the tools that `tools/list` shows to an agent.

Those that it may call now (:mod:`invocations.decide.callable_tools`), in the order of their ids and by the names that every provider
takes (:mod:`unitools.dialects.tool_names`), with the id beside the name. The cursor is the last id seen, so a list that changes
meanwhile neither skips nor repeats.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp_types import INVALID_PARAMS, ListToolsResult, Tool, ToolAnnotations, ToolExecution
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from access.halts.services import find_halt_of_agent
from invocations.decide.callable_tools import offer_tools
from invocations.mcp.meta_keys import HALTED, TOOL_ID
from invocations.mcp.request_context import get_mcp_request
from registry.discovery.tool_specs import build_spec, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp.server.context import ServerRequestContext
    from mcp_types import PaginatedRequestParams

    from kernel.principal import Principal
    from unitools.manifest import Manifest

PAGE_SIZE = 100


def _cursor(id: str) -> str:
    return base64.urlsafe_b64encode(id.encode()).decode()


def _id_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise MCPError(INVALID_PARAMS, "The cursor is not one that this list gave out.") from None


def _without_headers(schema: Any) -> Any:
    """The hub takes no argument from a header, and asks no client to send one there (SEP-2243)."""
    if isinstance(schema, Mapping):
        said = {name: value for name, value in schema.items() if name != X_MCP_HEADER_KEY or not isinstance(value, str)}
        return {name: _without_headers(value) for name, value in said.items()}
    return [_without_headers(each) for each in schema] if isinstance(schema, list) else schema


def build_mcp_tool(manifest: Manifest, name: str, *, modern: bool) -> Tool:
    """The tool as MCP has it, by this name. Before 2026-07-28 structured content is an object or nothing."""
    spec = build_spec(manifest)
    structured = modern or (spec.output_schema or {}).get("type") == "object"
    hints = spec.annotations
    return Tool(
        name=name,
        title=spec.title or spec.name,
        description=spec.description,
        input_schema=_without_headers(spec.parameters),
        output_schema=dict(spec.output_schema) if spec.output_schema is not None and structured else None,
        annotations=ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
        execution=None if modern else ToolExecution(task_support="optional"),
        _meta={TOOL_ID: spec.name},
    )


def list_tools_after(id: str, *, by: Principal, modern: bool) -> ListToolsResult:
    """One page of what may be called now, without tools that have no name of their own: they are called by their ids."""
    offer = offer_tools(by=by)
    listed = order_tools(offer.manifests, names_in("mcp", offer.installed))
    rest = [(name, manifest) for name, manifest in listed if manifest.id > id]
    page = rest[:PAGE_SIZE]
    tools = [build_mcp_tool(manifest, name, modern=modern) for name, manifest in page]
    if not listed and (stopped := find_halt_of_agent(by)):
        return ListToolsResult(tools=[], _meta={HALTED: stopped.detail})
    return ListToolsResult(tools=tools, next_cursor=_cursor(page[-1][1].id) if len(rest) > PAGE_SIZE else None)


def order_tools(manifests: Iterable[Manifest], ids: Mapping[str, str]) -> list[tuple[str, Manifest]]:
    """Those that have a name (``ids``: name → id), as they are listed."""
    names = {id: name for name, id in ids.items()}
    return sorted(((names[each.id], each) for each in manifests if each.id in names), key=lambda named: named[1].id)


async def list_tools(context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None) -> ListToolsResult:
    arrival, modern = get_mcp_request(context), context.protocol_version in MODERN_PROTOCOL_VERSIONS
    after = _id_of(params.cursor) if params is not None and params.cursor else ""
    return await arrival.within(lambda: list_tools_after(after, by=arrival.by, modern=modern))
