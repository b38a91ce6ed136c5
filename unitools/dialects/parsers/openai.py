"""OpenAI Chat Completions: the calls that a response proposes, and how they are answered.

Read are a whole completion, one of its choices, an assistant's message, and a list of tool calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem
from unitools.dialects.arguments import Arguments
from unitools.dialects.parsers.proposals import Proposal, build_calls, get_answered_call, get_wire_id
from unitools.dialects.parsers.responses import (
    CHUNK,
    PART,
    SDK,
    WEAK,
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

# Servers that speak this dialect have words of their own. Beside these the text of the arguments shows a cut.
CUT_OFF = frozenset({"length", "max_tokens", "model_length", "content_filter", "insufficient_system_resource", "error"})

SEVERAL = "Several choices propose calls: take one of them, and read its message."
LEGACY = "`function_call` is no longer used: give the tools in `tools`, then the answer has `tool_calls`."
FREE_TEXT = "Calls of custom tools with free text are not taken: call a function with JSON."


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The response unfolded; None if it is of another dialect."""
    response = decode_response(response)
    if (choices := get_items(get_field(response, "choices"))) is not None:
        return _completion(response, choices)
    if (calls := get_items(response)) is not None:
        return UnfoldedResponse(PART, calls) if calls and all(_is_call(each) for each in calls) else None
    if _reason(response):
        return _message(get_field(response, "message"), cut=_is_cut(response), score=PART)
    return _message(response, cut=False, score=PART)


def _completion(response: object, choices: Sequence[Any]) -> UnfoldedResponse:
    score = SDK if is_from(response, "openai") else WHOLE
    if any(get_field(choice, "delta") is not None for choice in choices):
        return UnfoldedResponse(score, trouble=CHUNK)
    proposing = [choice for choice in choices if get_items(get_field(get_field(choice, "message"), "tool_calls"))]
    if len(proposing) > 1:
        return UnfoldedResponse(score, trouble=SEVERAL)
    choice = (proposing or choices or [None])[0]
    return _message(get_field(choice, "message"), cut=_is_cut(choice), score=score) or UnfoldedResponse(score)


def _reason(choice: object) -> str:
    return get_text(get_field(choice, "finish_reason", "done_reason"))


def _is_cut(choice: object) -> bool:
    return _reason(choice) in CUT_OFF


def _message(message: object, *, cut: bool, score: int) -> UnfoldedResponse | None:
    if get_text(get_field(message, "role")) != "assistant" or get_field(message, "type") is not None:
        return None
    if get_field(message, "function_call") is not None:
        return UnfoldedResponse(score, trouble=LEGACY)
    calls = get_items(get_field(message, "tool_calls"))
    content = get_field(message, "content")
    if not calls and score == PART:
        score = WEAK
        if get_items(content) or get_field(message, "parts") is not None:
            return None
    return UnfoldedResponse(score, calls or (), join_texts(content, "text"), cut)


def _is_call(thing: object) -> bool:
    return (get_field(thing, "type") is None or get_text(get_field(thing, "type")) in {"function", "custom"}) and (
        isinstance(get_field(get_field(thing, "function"), "name"), str)
        or isinstance(get_field(get_field(thing, "custom"), "name"), str)
    )


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    answer = check_readable(unfold_response(response), "openai")
    return build_calls((_proposal(each, cut=answer.cut) for each in answer.calls), reading)


def _proposal(call: object, *, cut: bool) -> Proposal:
    id = get_field(call, "id")
    if (custom := get_field(call, "custom")) is not None:
        return Proposal(get_field(custom, "name"), id=id, refused=Arguments(None, CallProblem.MALFORMED, FREE_TEXT))
    function = get_field(call, "function")
    arguments = get_field(function, "arguments")
    return Proposal(get_field(function, "name"), "" if arguments is None else arguments, id, cut=cut)


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One message of the role `tool` for each result, in order."""
    return [
        {"role": "tool", "tool_call_id": get_wire_id(get_answered_call(result)), "content": result.to_content()}
        for result in results
    ]
