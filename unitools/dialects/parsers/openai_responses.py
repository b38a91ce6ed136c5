"""OpenAI Responses: the calls that a response proposes, and how they are answered.

Read are a whole response, and a list of its output items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem
from unitools.dialects.arguments import Arguments
from unitools.dialects.parsers.openai import FREE_TEXT
from unitools.dialects.parsers.proposals import Proposal, build_calls, get_answered_call, get_wire_id
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

FUNCTION, CUSTOM = "function_call", "custom_tool_call"
OURS = frozenset({FUNCTION, CUSTOM})  # the provider makes calls of other kinds itself
COMPLETE = frozenset({"", "completed"})


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The response unfolded; None if it is of another dialect."""
    response = decode_response(response)
    if (output := get_items(get_field(response, "output"))) is not None:
        score = SDK if is_from(response, "openai") else WHOLE
        if get_field(response, "object") is not None and get_text(get_field(response, "object")) != "response":
            return None
        return _output(output, score, cut=get_text(get_field(response, "status")) not in COMPLETE)
    if get_text(get_field(response, "type")).startswith("response."):
        return UnfoldedResponse(WHOLE, trouble=CHUNK)
    if (listed := get_items(response)) and any(_is_ours(each) for each in listed):
        return _output(listed, PART, cut=False) if all(get_text(get_field(each, "type")) for each in listed) else None
    return None


def _is_ours(item: object) -> bool:
    return get_text(get_field(item, "type")) in OURS and get_field(item, "call_id") is not None


def _output(output: Sequence[Any], score: int, *, cut: bool) -> UnfoldedResponse:
    said = "".join(
        join_texts(get_field(item, "content"), "output_text") for item in output if get_field(item, "type") == "message"
    )
    return UnfoldedResponse(score, [item for item in output if get_text(get_field(item, "type")) in OURS], said, cut)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    answer = check_readable(unfold_response(response), "openai-responses")
    return build_calls((_proposal(each, cut=answer.cut) for each in answer.calls), reading)


def _proposal(item: object, *, cut: bool) -> Proposal:
    name, id = get_field(item, "name"), get_field(item, "call_id")
    if get_text(get_field(item, "type")) == CUSTOM:
        return Proposal(name, id=id, meta=CUSTOM, refused=Arguments(None, CallProblem.MALFORMED, FREE_TEXT))
    arguments = get_field(item, "arguments")
    cut = cut or get_text(get_field(item, "status")) not in COMPLETE
    return Proposal(name, "" if arguments is None else arguments, id, cut=cut)


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One input item `function_call_output` for each result, in order."""
    return [
        {
            "type": f"{CUSTOM if call.meta == CUSTOM else FUNCTION}_output",
            "call_id": get_wire_id(call),
            "output": result.to_content(),
        }
        for result in results
        for call in [get_answered_call(result)]
    ]
