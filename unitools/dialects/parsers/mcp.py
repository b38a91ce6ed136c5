"""MCP: the calls that a client makes, and how they are answered.

Read are a request `tools/call`, with or without the frame of JSON-RPC, and a list of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.parsers.proposals import Proposal, build_calls, convert_to_json, get_answered_call
from unitools.dialects.parsers.responses import (
    SDK,
    WHOLE,
    UnfoldedResponse,
    check_readable,
    get_field,
    get_items,
    get_text,
    is_from,
)
from unitools.dialects.response_decoder import decode_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions

METHOD = "tools/call"


def unfold_request(response: object) -> UnfoldedResponse | None:
    """The request unfolded; None if it is of another dialect."""
    response = decode_response(response)
    requests = get_items(response)
    if requests is None:
        requests = [response]
    if not requests or not all(get_text(get_field(each, "method")) == METHOD for each in requests):
        return None
    return UnfoldedResponse(SDK if is_from(requests[0], "mcp", "mcp_types") else WHOLE, requests)


def detect(response: object) -> int:
    """How surely the request is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_request(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order; `meta` is ``{"id": …}`` of JSON-RPC where there is one.

    Raises UnknownResponse, ResponseTooLarge, NotJson.
    """
    return build_calls((_proposal(each) for each in check_readable(unfold_request(response), "mcp").calls), reading)


def _proposal(request: object) -> Proposal:
    params, id = get_field(request, "params"), get_field(request, "id")
    if not isinstance(id, (int, str)):
        return Proposal(get_field(params, "name"), get_field(params, "arguments"))
    return Proposal(get_field(params, "name"), get_field(params, "arguments"), str(id), meta={"id": id})


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One `CallToolResult` for each result, in order, inside a JSON-RPC response where the request had an id.

    What is no object is in `structuredContent` as ``{"result": …}``, as the rendering says it. An error has text only.
    """
    return [_framed(get_answered_call(result), _result(result)) for result in results]


def _framed(call: ToolCall, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call.meta["id"], "result": result} if isinstance(call.meta, dict) else result


def _result(result: ToolResult) -> dict[str, Any]:
    said: dict[str, Any] = {"content": [{"type": "text", "text": result.to_content()}], "isError": result.is_error}
    if not result.is_error:
        value = convert_to_json(result.value)
        said["structuredContent"] = value if isinstance(value, dict) else {"result": value}
    return said
