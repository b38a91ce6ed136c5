"""LangChain: the calls that one of its messages proposes, and how they are answered.

Read are an ``AIMessage`` as an object, as its ``model_dump()``, as ``message_to_dict`` or ``dumpd`` write it, what a node of a graph
gives (``{"messages": […]}``, of which the last counts), and a list of its tool calls. LangChain completes the arguments of an answer
that was cut: so of a message that was put together from chunks the text of the arguments is read, which is in ``tool_call_chunks``,
and every reason counts as a cut but those that are known to end a whole answer. A message may have several reasons, or none. Calls
that LangChain could not read (``invalid_tool_calls``) are read here as those of OpenAI are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.dialects.parsers.proposals import build_flat_calls, get_answered_call, get_wire_id
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
from unitools.dialects.streams.langchain import PIECE, REASONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions

CALLS = frozenset({"tool_call", "invalid_tool_call", "tool_call_chunk"})
MESSAGE = "ai"
# How the providers behind LangChain say that an answer is whole, in small letters. Where it puts chunks together it writes their words
# one behind the other ("stopstop"); some providers say "null" in each chunk before the last.
COMPLETE = re.compile(
    r"(?:null)*+(?:stop_sequence|stop|tool_calls?|function_call|end_turn|tool_use|completed?|eos_token|eos|normal"
    r"|finish_reason_unspecified)++"
)


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The message unfolded; None if it is of another dialect."""
    response = decode_response(response)
    if (listed := get_items(response)) is not None:
        return UnfoldedResponse(PART, listed) if listed and all(map(_is_call, listed)) else None
    message = _message(response)
    if message is None:
        return None
    kind = get_text(get_field(message, "type"))
    pieces = get_items(get_field(message, "tool_call_chunks"))
    about = get_field(message, "response_metadata")
    reasons = [said for name in (*REASONS, "status") if (said := get_field(about, name))]
    ended = bool(reasons) or get_field(message, "chunk_position") == "last"
    score = SDK if is_from(response, "langchain_core", "langchain") else WHOLE
    if kind == PIECE and not ended:
        return UnfoldedResponse(score, trouble=CHUNK)
    calls = pieces if kind == PIECE and pieces else get_items(get_field(message, "tool_calls")) or ()
    calls = [*calls, *(() if kind == PIECE and pieces else get_items(get_field(message, "invalid_tool_calls")) or ())]
    cut = not all(COMPLETE.fullmatch(get_text(each).lower()) for each in reasons)
    return UnfoldedResponse(score, calls, join_texts(get_field(message, "content"), "text"), cut)


def _message(response: object) -> Any:
    """The message itself, wherever it stands; None where there is none."""
    for place in ("kwargs", "data"):  # of dumpd, of message_to_dict
        inner = get_field(response, place)
        if inner is not None and _is_message(inner):
            return inner
    if (messages := get_items(get_field(response, "messages"))) and _is_message(messages[-1]):
        return messages[-1]
    return response if _is_message(response) else None


def _is_message(thing: object) -> bool:
    is_ours = get_text(get_field(thing, "type")) in {MESSAGE, PIECE}
    return is_ours and get_items(get_field(thing, "tool_calls")) is not None


def _is_call(thing: object) -> bool:
    return get_text(get_field(thing, "type")) in CALLS and isinstance(get_field(thing, "name"), str)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    if answer is None:
        return 0
    return answer.score if answer.calls or answer.score != PART else WEAK


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    return build_flat_calls(check_readable(unfold_response(response), "langchain"), reading, arguments="args")


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One ``ToolMessage`` for each result, in order, as the arguments of its class: ``ToolMessage(**each)``."""
    return [
        {
            "type": "tool",
            "content": result.to_content(),
            "tool_call_id": get_wire_id(call),
            "name": call.provider_name,
            "status": "error" if result.is_error else "success",
        }
        for result in results
        for call in [get_answered_call(result)]
    ]
