"""MCP results: how the answer to a call reads to a model, and to the client that it works in.

What the model needs is in the content: the value as JSON text, or what went wrong with the reason and what to do about it; then what
the call has left, small things as a whole. The `call` object, evidence and the age of the answer are for programs, in `_meta`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from access.problems import Halted, NoGrant
from invocations.artifacts.services import read_artifact
from invocations.mcp.artifact_resources import build_contents
from invocations.mcp.errors import error_json
from invocations.mcp.meta_keys import CALL, EVIDENCE, TTL
from kernel.ids import decode
from registry.problems import NotInstalled, ToolNotEnabled, ToolPaused, ToolRetired, VersionYanked

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kernel.http.envelopes import ResponseEnvelope
    from kernel.principal import Principal

MAX_EMBEDDED = 256 * 1024  # bytes of an artifact that is sent along; a larger one is fetched
READ = "invocations:read"
# What keeps a tool out of the list, so that whoever calls it has an older one.
NOT_LISTED = (NotInstalled, ToolNotEnabled, ToolPaused, ToolRetired, VersionYanked, NoGrant, Halted)
LIST_AGAIN = "This tool is not in your list now. List the tools again (tools/list) and use one that is there."


def dump_model(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _text(value: Any) -> TextContent:
    return TextContent(text=json.dumps(value, ensure_ascii=False))


def build_call_result(answer: ResponseEnvelope, *, by: Principal, modern: bool) -> CallToolResult:
    """The whole result. On an error there is no structured content, for models are shown that instead of the text. Before
    2026-07-28 (``modern``) it is an object or nothing.
    """
    meta = {CALL: answer.call, EVIDENCE: answer.evidence.to_json(), TTL: answer.ttl_seconds}
    meta = {name: value for name, value in meta.items() if value is not None}
    warnings = {"warnings": list(answer.warnings)} if answer.warnings else {}
    if answer.error is not None:
        note = {"note": LIST_AGAIN} if isinstance(answer.error, NOT_LISTED) else {}
        return CallToolResult(
            content=[_text({"error": error_json(answer.error)} | note | warnings)], is_error=True, _meta=meta
        )
    content: list[ContentBlock] = [_text(answer.data)]
    if warnings:
        content.append(_text(warnings))
    content += [_left(each, by) for each in (answer.call or {}).get("artifacts", ())]
    structured = answer.data if modern or isinstance(answer.data, dict) else None
    return CallToolResult(content=content, structured_content=structured, _meta=meta)


def _left(artifact: dict[str, Any], by: Principal) -> ContentBlock:
    """An artifact. What is sent along is read, which is a fact as when it is fetched."""
    url, media_type = artifact["url"], artifact["media_type"]
    if artifact["bytes"] > MAX_EMBEDDED or not by.may(READ):
        return ResourceLink(uri=url, name=artifact["name"], mime_type=media_type, size=artifact["bytes"])
    _, content = read_artifact(artifact_id=decode("art", artifact["id"]), by=by, via="mcp")
    data, sort = base64.b64encode(content).decode(), media_type.partition("/")[0]
    if sort == "image":
        return ImageContent(data=data, mime_type=media_type)
    if sort == "audio":
        return AudioContent(data=data, mime_type=media_type)
    return EmbeddedResource(resource=build_contents(url, media_type, content))
