"""How does the answer to a call read to a model, and to the client that it works in?

What the model needs is in the content: the value as JSON text, or what went wrong with the reason and what to do about it. The
`call` object, evidence and the age of the answer are for programs, in `_meta`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent

if TYPE_CHECKING:
    from toolhub.kernel.envelopes import ResponseEnvelope

CALL, EVIDENCE, TTL = "toolhub/call", "toolhub/evidence", "toolhub/ttl_seconds"


def _text(value: Any) -> TextContent:
    return TextContent(type="text", text=json.dumps(value, ensure_ascii=False))


def result_of(answer: ResponseEnvelope) -> CallToolResult:
    """The whole result. On an error there is no structured content, for models are shown that instead of the text."""
    meta = {CALL: answer.call, EVIDENCE: answer.evidence.to_json(), TTL: answer.ttl_seconds}
    meta = {name: value for name, value in meta.items() if value is not None}
    if answer.error is not None:
        said = {"error": answer.error.to_error()} | ({"warnings": list(answer.warnings)} if answer.warnings else {})
        return CallToolResult(content=[_text(said)], is_error=True, _meta=meta)
    content: list[ContentBlock] = [_text(answer.data)]
    if answer.warnings:
        content.append(_text({"warnings": list(answer.warnings)}))
    content += [_link(each) for each in (answer.call or {}).get("artifacts", ())]
    return CallToolResult(content=content, structured_content=answer.data, _meta=meta)


def _link(artifact: dict[str, Any]) -> ResourceLink:
    url = artifact["url"]
    return ResourceLink(
        type="resource_link",
        uri=url if "://" in url else f"{settings.TOOLHUB_PUBLIC_URL}{url}",
        name=artifact.get("name") or artifact["id"],
        mime_type=artifact.get("media_type"),
        size=artifact.get("size"),
    )
