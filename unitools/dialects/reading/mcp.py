"""Which calls does a client of MCP make, and how are they answered?

Read are a request `tools/call`, with or without the frame of JSON-RPC, and a list of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.reading.proposals import Proposal, call_of, calls_of, plain_value
from unitools.dialects.reading.shapes import SDK, WHOLE, Answer, get, is_from, items, opened, readable, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import Reading

METHOD = "tools/call"


def look(response: object) -> Answer | None:
    """The request unfolded; None if it is of another dialect."""
    response = opened(response)
    requests = items(response)
    if requests is None:
        requests = [response]
    if not requests or not all(word(get(each, "method")) == METHOD for each in requests):
        return None
    return Answer(SDK if is_from(requests[0], "mcp", "mcp_types") else WHOLE, requests)


def detect(response: object) -> int:
    """How surely the request is of this dialect, 0 to 100, by its shape. Raises TooLarge, NotJson for text."""
    answer = look(response)
    return answer.score if answer else 0


def parse(response: object, reading: Reading) -> list[ToolCall]:
    """The calls in their order; `meta` is ``{"id": …}`` of JSON-RPC where there is one. Raises UnknownResponse, TooLarge, NotJson."""
    return calls_of((_proposal(each) for each in readable(look(response), "mcp").calls), reading)


def _proposal(request: object) -> Proposal:
    params, id = get(request, "params"), get(request, "id")
    if not isinstance(id, (int, str)):
        return Proposal(get(params, "name"), get(params, "arguments"))
    return Proposal(get(params, "name"), get(params, "arguments"), str(id), meta={"id": id})


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One `CallToolResult` for each result, in order, inside a JSON-RPC response where the request had an id.

    What is no object is in `structuredContent` as ``{"result": …}``, as the rendering says it. An error has text only.
    """
    return [_framed(call_of(result), _result(result)) for result in results]


def _framed(call: ToolCall, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call.meta["id"], "result": result} if isinstance(call.meta, dict) else result


def _result(result: ToolResult) -> dict[str, Any]:
    said: dict[str, Any] = {"content": [{"type": "text", "text": result.to_content()}], "isError": result.is_error}
    if not result.is_error:
        value = plain_value(result.value)
        said["structuredContent"] = value if isinstance(value, dict) else {"result": value}
    return said
