"""MCP results: what the call of a tool of others came to, and what its server lists, as a hub has it."""

from __future__ import annotations

import importlib

from unitools import runtime
from unitools.mcp_conversation import RequestRefused, ServerUnfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from unitools.mcp_conversation import McpConversation

_INVALID_PARAMS = -32602
_MAX_MESSAGE_CHARS = 2000
_DROPPED_KEYS = ("annotations", "_meta")
_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "application/pdf": "pdf",
}


def ask_tool(talk: McpConversation, params: dict[str, Any]) -> dict[str, Any]:
    """The result of ``tools/call``; an error of the protocol is a domain error."""
    try:
        result = talk.request("tools/call", params)
    except RequestRefused as refused:
        refusal = runtime.InvalidArgument if refused.code == _INVALID_PARAMS else runtime.UpstreamError
        raise refusal(refused.message[:_MAX_MESSAGE_CHARS]) from None
    if result.get("resultType", "complete") != "complete":
        raise ServerUnfit("The server asks for more than the call has, such as an answer of a person.")
    return result


def read_list(talk: McpConversation, begun: dict[str, Any]) -> dict[str, Any]:
    """``{protocol, tools}``: the revision that the server speaks, and the whole of its list. ``begun``: what it said at first."""
    try:
        tools = talk.list_tools()
    except ServerUnfit as error:  # it has started, and what it lists is no list
        raise runtime.ResultInvalid(str(error)) from None
    except RequestRefused as refused:
        raise ServerUnfit(f"The server does not list its tools: {refused.message[:500]}") from None
    return {"protocol": begun["protocolVersion"][:40], "tools": tools}


def read_result(result: dict[str, Any], *, structured: bool) -> dict[str, Any]:
    """What the call returns: the ``structuredContent`` where the tool has an ``outputSchema``, else ``{content}``; bytes become
    artifacts. :class:`unitools.runtime.DomainError` where the server calls it an error.
    """
    content = result.get("content", [])
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise ServerUnfit("The content of the result is no list of objects.")
    if result.get("isError") is True:
        texts = [each["text"] for each in content if isinstance(each.get("text"), str)]
        said = "\n".join(texts) or "The server calls this an error, and says no more."
        raise runtime.UpstreamError(said[:_MAX_MESSAGE_CHARS])
    if not structured:
        return {"content": [_kept(each, place) for place, each in enumerate(content, 1)]}
    if not isinstance(result.get("structuredContent"), dict):
        raise runtime.ResultInvalid("The server declares an outputSchema and returned no structuredContent.")
    if others := sorted({str(each.get("type"))[:40] for each in content if each.get("type") != "text"}):
        runtime.warn(f"Beside its result the server returned what is not kept: {', '.join(others)}.")
    found: dict[str, Any] = result["structuredContent"]
    return found


def _kept(part: dict[str, Any], place: int) -> dict[str, Any]:
    """A part of a result. Bytes become an artifact, of which the result has the name."""
    said = {name: value for name, value in part.items() if name not in _DROPPED_KEYS}
    inner = said.get("resource")
    if isinstance(inner, dict) and "blob" in inner:
        rest = {name: value for name, value in inner.items() if name not in ("blob", *_DROPPED_KEYS)}
        return said | {"resource": rest | _leave(inner["blob"], inner.get("mimeType"), place)}
    if "data" in said and said.get("type") in ("image", "audio"):
        return {"type": said["type"]} | _leave(said["data"], said.get("mimeType"), place)
    return said


def _leave(data: Any, kind: Any, place: int) -> dict[str, Any]:
    binascii = importlib.import_module("binascii")  # an extension: only when it is needed
    try:
        content = binascii.a2b_base64(data, strict_mode=True)
    except (ValueError, TypeError):
        raise ServerUnfit("The server returned bytes that are no base64.") from None
    kind = kind if isinstance(kind, str) else ""
    left = runtime.artifact(f"part-{place}.{_ENDINGS.get(kind, 'bin')}", content, media_type=kind)
    return {"mimeType": kind, **left}
