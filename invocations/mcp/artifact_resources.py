"""Artifact resources: what the agent's calls have left, as MCP has it.

A resource is an artifact, and its address the one that REST has; that of an answer, which is signed and good for a day, names the same
one. Here it is read with what the request came with, as long as the artifact is kept. That it was read is a fact. Artifacts
never change, so there is nothing to subscribe to.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from invocations.artifacts.description import decode_text
from invocations.artifacts.services import find_artifacts, read_artifact
from invocations.mcp.request_context import get_mcp_request
from kernel.http.pagination import fetch_page
from kernel.ids import decode, id_pattern
from kernel.problems import Problem

if TYPE_CHECKING:
    from uuid import UUID

    from mcp.server.context import ServerRequestContext
    from mcp_types import PaginatedRequestParams, ReadResourceRequestParams

    from kernel.principal import Principal

MAX_READ = 4 * 1024 * 1024  # bytes; they are written as text, and whole
PATH = "/api/v1/artifacts/"
NOT_FOUND_BEFORE = -32002  # 2026-07-28; since then the parameters are wrong
_PATH = re.compile(f"{re.escape(PATH)}({id_pattern('art')[1:-1]})/?")


def build_address(artifact: str) -> str:
    return f"{settings.TOOLHUB_PUBLIC_URL}{PATH}{artifact}"


def read_address(uri: str) -> UUID | None:
    """The artifact that an address of this hub names, signed or not."""
    try:
        split = urlsplit(uri)
    except ValueError:
        return None
    found = _PATH.fullmatch(split.path)
    if f"{split.scheme}://{split.netloc}" != settings.TOOLHUB_PUBLIC_URL or found is None:
        return None
    return decode("art", found[1])


def build_contents(uri: str, media_type: str, content: bytes) -> TextResourceContents | BlobResourceContents:
    is_text = media_type.partition("/")[0] == "text" or media_type == "application/json"
    text = decode_text(content) if is_text else None
    if text is not None:
        return TextResourceContents(uri=uri, mime_type=media_type, text=text)
    return BlobResourceContents(uri=uri, mime_type=media_type, blob=base64.b64encode(content).decode())


def _unknown(uri: str, *, modern: bool) -> MCPError:
    return MCPError(
        INVALID_PARAMS if modern else NOT_FOUND_BEFORE,
        "No artifact of this agent's calls has this address. It may have been removed: list the resources again.",
        data={"uri": uri},
    )


def _read(uri: str, *, by: Principal, modern: bool) -> ReadResourceResult:
    artifact_id = read_address(uri)
    row = find_artifacts(by).filter(pk=artifact_id).first() if artifact_id is not None else None
    if row is None:
        raise _unknown(uri, modern=modern)
    if row.content.size > MAX_READ:
        raise MCPError(
            INVALID_PARAMS,
            f"This artifact has {row.content.size:,} bytes, and at most {MAX_READ:,} are read over MCP: get it over HTTP.",
            data={"uri": uri},
        )
    row, content = read_artifact(artifact_id=row.pk, by=by, via="mcp")
    return ReadResourceResult(contents=[build_contents(uri, row.media_type, content)])


def _list(after: str, *, by: Principal) -> ListResourcesResult:
    try:
        page = fetch_page(find_artifacts(by).select_related("content", "invocation"), prefix="art", after=after)
    except Problem as problem:
        raise MCPError(INVALID_PARAMS, problem.detail) from problem
    resources = [
        Resource(
            uri=build_address(row.wire_id),
            name=row.name,
            description=f"Left by the call {row.invocation.wire_id} of {row.invocation.tool}.",
            mime_type=row.media_type,
            size=row.content.size,
        )
        for row in page.rows
    ]
    return ListResourcesResult(resources=resources, next_cursor=page.next or None)


async def list_artifacts(
    context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """The newest first."""
    arrival, after = get_mcp_request(context), params.cursor if params is not None else None
    return await arrival.within(lambda: _list(after or "", by=arrival.by))


async def list_artifact_templates(
    _: ServerRequestContext[Any, Any], __: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    template = ResourceTemplate(
        uri_template=build_address("{artifact_id}"),
        name="artifact",
        description="What a call has left, by the id in `artifacts` of its answer.",
    )
    return ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    context: ServerRequestContext[Any, Any], params: ReadResourceRequestParams
) -> ReadResourceResult:
    arrival, modern = get_mcp_request(context), context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return await arrival.within(lambda: _read(str(params.uri), by=arrival.by, modern=modern))
