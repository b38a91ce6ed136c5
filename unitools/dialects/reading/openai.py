"""Which calls does a response of OpenAI Chat Completions propose, and how are they answered?

Read are a whole completion, one of its choices, an assistant's message, and a list of tool calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem
from unitools.dialects.arguments import Arguments
from unitools.dialects.reading.proposals import Proposal, call_of, calls_of, wire_id
from unitools.dialects.reading.shapes import (
    PART,
    SDK,
    WEAK,
    WHOLE,
    Answer,
    get,
    is_from,
    items,
    opened,
    readable,
    texts,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import Reading

# Servers that speak this dialect have words of their own. Beside these the text of the arguments shows a cut.
CUT_OFF = frozenset({"length", "max_tokens", "model_length", "content_filter", "insufficient_system_resource", "error"})

CHUNK = "This is a chunk of a stream: put the chunks together first (the SDK's helper does), then read the whole."
SEVERAL = "Several choices propose calls: take one of them, and read its message."
LEGACY = "`function_call` is no longer used: give the tools in `tools`, then the answer has `tool_calls`."
FREE_TEXT = "Calls of custom tools with free text are not taken: call a function with JSON."


def look(response: object) -> Answer | None:
    """The response unfolded; None if it is of another dialect."""
    response = opened(response)
    if (choices := items(get(response, "choices"))) is not None:
        return _completion(response, choices)
    if (calls := items(response)) is not None:
        return Answer(PART, calls) if calls and all(_is_call(each) for each in calls) else None
    if _reason(response):
        return _message(get(response, "message"), cut=_is_cut(response), score=PART)
    return _message(response, cut=False, score=PART)


def _completion(response: object, choices: Sequence[Any]) -> Answer:
    score = SDK if is_from(response, "openai") else WHOLE
    if any(get(choice, "delta") is not None for choice in choices):
        return Answer(score, trouble=CHUNK)
    proposing = [choice for choice in choices if items(get(get(choice, "message"), "tool_calls"))]
    if len(proposing) > 1:
        return Answer(score, trouble=SEVERAL)
    choice = (proposing or choices or [None])[0]
    return _message(get(choice, "message"), cut=_is_cut(choice), score=score) or Answer(score)


def _reason(choice: object) -> str:
    return word(get(choice, "finish_reason", "done_reason"))


def _is_cut(choice: object) -> bool:
    return _reason(choice) in CUT_OFF


def _message(message: object, *, cut: bool, score: int) -> Answer | None:
    if word(get(message, "role")) != "assistant" or get(message, "type") is not None:
        return None
    if get(message, "function_call") is not None:
        return Answer(score, trouble=LEGACY)
    calls = items(get(message, "tool_calls"))
    content = get(message, "content")
    if not calls and score == PART:
        score = WEAK
        if items(content) or get(message, "parts") is not None:
            return None
    return Answer(score, calls or (), texts(content, "text"), cut)


def _is_call(thing: object) -> bool:
    return (get(thing, "type") is None or word(get(thing, "type")) in {"function", "custom"}) and (
        isinstance(get(get(thing, "function"), "name"), str) or isinstance(get(get(thing, "custom"), "name"), str)
    )


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises TooLarge, NotJson for text."""
    answer = look(response)
    return answer.score if answer else 0


def parse(response: object, reading: Reading) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, TooLarge, NotJson."""
    answer = readable(look(response), "openai")
    return calls_of((_proposal(each, cut=answer.cut) for each in answer.calls), reading)


def _proposal(call: object, *, cut: bool) -> Proposal:
    id = get(call, "id")
    if (custom := get(call, "custom")) is not None:
        return Proposal(get(custom, "name"), id=id, refused=Arguments(None, CallProblem.MALFORMED, FREE_TEXT))
    function = get(call, "function")
    arguments = get(function, "arguments")
    return Proposal(get(function, "name"), "" if arguments is None else arguments, id, cut=cut)


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One message of the role `tool` for each result, in order."""
    return [
        {"role": "tool", "tool_call_id": wire_id(call_of(result)), "content": result.to_content()} for result in results
    ]
