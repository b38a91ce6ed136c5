"""Bedrock Converse: the calls that a response proposes, and how they are answered.

Read are a whole response, its message, and a list of its content blocks. The arguments come as objects, so nothing but the stop
reason shows a cut: every reason counts as one but those that are known to end a whole answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unitools.dialects.parsers.proposals import build_flat_calls, convert_to_json, get_answered_call, get_wire_id
from unitools.dialects.parsers.responses import (
    CHUNK,
    PART,
    WEAK,
    WHOLE,
    UnfoldedResponse,
    check_readable,
    get_field,
    get_items,
    get_text,
)
from unitools.dialects.response_decoder import decode_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions

CALL = "toolUse"
COMPLETE = frozenset({"", "end_turn", "tool_use", "stop_sequence"})
EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)
BLOCKS = frozenset({"text", CALL, "toolResult", "reasoningContent", "citationsContent", "guardContent"})


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The response unfolded; None if it is of another dialect."""
    response = decode_response(response)
    if isinstance(response, Mapping):
        if len(response) == 1 and EVENTS.issuperset(response):
            return UnfoldedResponse(WHOLE, trouble=CHUNK)
        reason = get_text(get_field(response, "stopReason"))
        message = get_field(get_field(response, "output"), "message")
        if message is not None and get_items(get_field(message, "content")) is not None:
            return _content(get_field(message, "content"), WHOLE, cut=reason not in COMPLETE)
        blocks = get_items(get_field(response, "content"))
        if get_text(get_field(response, "role")) == "assistant" and blocks and all(map(_is_block, blocks)):
            return _content(blocks, PART, cut=False)
        return None
    if (listed := get_items(response)) and all(map(_is_block, listed)):
        return _content(listed, PART, cut=False)
    return None


def _is_block(thing: object) -> bool:
    """A block is an object with one of these keys; those of Anthropic, OpenAI and Gemini say their kind otherwise."""
    return isinstance(thing, Mapping) and len(thing) == 1 and BLOCKS.issuperset(thing)


def _content(blocks: Sequence[Any], score: int, *, cut: bool) -> UnfoldedResponse:
    calls = [call for each in blocks if (call := get_field(each, CALL)) is not None]
    ours = [each for each in calls if get_text(get_field(each, "type")) in {"", "tool_use"}]  # others it makes itself
    said = "".join(get_text(get_field(each, "text")) for each in blocks)
    return UnfoldedResponse(score if calls or score != PART else WEAK - 10, ours, said, cut)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    return build_flat_calls(
        check_readable(unfold_response(response), "bedrock"), reading, arguments="input", id="toolUseId"
    )


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One user message with a block `toolResult` for each result, in order: the API wants them together. None for none."""
    blocks = [{"toolResult": _result(result)} for result in results]
    return [{"role": "user", "content": blocks}] if blocks else []


def _result(result: ToolResult) -> dict[str, Any]:
    value = None if result.is_error else convert_to_json(result.value)
    said = {"json": value} if isinstance(value, dict) else {"text": result.to_content()}
    status = "error" if result.is_error else "success"
    return {"toolUseId": get_wire_id(get_answered_call(result)), "content": [said], "status": status}
