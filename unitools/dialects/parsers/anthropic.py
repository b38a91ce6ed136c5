"""Anthropic Messages: the calls that a response proposes, and how they are answered.

Read are a whole message, and a list of its content blocks. The arguments come as objects, so nothing but the stop reason shows a cut:
every reason counts as one but those that are known to end a whole answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unitools.dialects.parsers.proposals import build_flat_calls, get_answered_call, get_wire_id
from unitools.dialects.parsers.responses import (
    CHUNK,
    PART,
    SDK,
    WHOLE,
    UnfoldedResponse,
    check_readable,
    get_field,
    get_items,
    get_text,
    is_from,
    join_texts,
)
from unitools.dialects.response_decoder import decode_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions

CALL = "tool_use"  # "server_tool_use" and "mcp_tool_use" are made by the provider itself
COMPLETE = frozenset({"", "end_turn", "tool_use", "stop_sequence"})
BLOCKS = frozenset({"text", CALL, "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The response unfolded; None if it is of another dialect."""
    response = decode_response(response)
    kind, reason = get_text(get_field(response, "type")), get_text(get_field(response, "stop_reason"))
    if kind.startswith(("message_", "content_block_")):
        return UnfoldedResponse(WHOLE, trouble=CHUNK)
    blocks = get_items(get_field(response, "content"))
    if (
        blocks is not None
        and get_text(get_field(response, "role")) == "assistant"
        and get_field(response, "tool_calls") is None
    ):
        if not all(_is_block(each) for each in blocks):
            return None
        score = SDK if is_from(response, "anthropic") else WHOLE if kind == "message" else PART
        going_on = kind == "message" and not reason and _names(response, "stop_reason")  # null in a stream only
        return _content(blocks, score, cut=going_on or reason not in COMPLETE)
    if (listed := get_items(response)) and all(_is_block(each) for each in listed):
        return _content(listed, PART, cut=False)
    return None


def _names(thing: object, field: str) -> bool:
    return field in thing if isinstance(thing, Mapping) else hasattr(thing, field)


def _is_block(thing: object) -> bool:
    kind = get_text(get_field(thing, "type"))
    return kind in BLOCKS or kind.endswith("_tool_result")


def _content(blocks: Sequence[Any], score: int, *, cut: bool) -> UnfoldedResponse:
    return UnfoldedResponse(
        score, [each for each in blocks if get_text(get_field(each, "type")) == CALL], join_texts(blocks, "text"), cut
    )


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    return build_flat_calls(check_readable(unfold_response(response), "anthropic"), reading, arguments="input")


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One user message with a block `tool_result` for each result, in order: the API wants them together. None for none."""
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": get_wire_id(get_answered_call(result)),
            "content": result.to_content(),
            "is_error": result.is_error,
        }
        for result in results
    ]
    return [{"role": "user", "content": blocks}] if blocks else []
