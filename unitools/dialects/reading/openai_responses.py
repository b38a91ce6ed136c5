"""Which calls does a response of OpenAI Responses propose, and how are they answered?

Read are a whole response, and a list of its output items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem
from unitools.dialects.arguments import Arguments
from unitools.dialects.reading.openai import FREE_TEXT
from unitools.dialects.reading.proposals import Proposal, call_of, calls_of, wire_id
from unitools.dialects.reading.shapes import (
    PART,
    SDK,
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

FUNCTION, CUSTOM = "function_call", "custom_tool_call"
OURS = frozenset({FUNCTION, CUSTOM})  # the provider makes calls of other kinds itself
COMPLETE = frozenset({"", "completed"})

EVENT = "This is an event of a stream: read the response inside the last one (`response.completed`)."


def look(response: object) -> Answer | None:
    """The response unfolded; None if it is of another dialect."""
    response = opened(response)
    if (output := items(get(response, "output"))) is not None:
        score = SDK if is_from(response, "openai") else WHOLE
        if get(response, "object") is not None and word(get(response, "object")) != "response":
            return None
        return _output(output, score, cut=word(get(response, "status")) not in COMPLETE)
    if word(get(response, "type")).startswith("response."):
        return Answer(WHOLE, trouble=EVENT)
    if (listed := items(response)) and any(_is_ours(each) for each in listed):
        return _output(listed, PART, cut=False) if all(word(get(each, "type")) for each in listed) else None
    return None


def _is_ours(item: object) -> bool:
    return word(get(item, "type")) in OURS and get(item, "call_id") is not None


def _output(output: Sequence[Any], score: int, *, cut: bool) -> Answer:
    said = "".join(texts(get(item, "content"), "output_text") for item in output if get(item, "type") == "message")
    return Answer(score, [item for item in output if word(get(item, "type")) in OURS], said, cut)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises TooLarge, NotJson for text."""
    answer = look(response)
    return answer.score if answer else 0


def parse(response: object, reading: Reading) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, TooLarge, NotJson."""
    answer = readable(look(response), "openai-responses")
    return calls_of((_proposal(each, cut=answer.cut) for each in answer.calls), reading)


def _proposal(item: object, *, cut: bool) -> Proposal:
    name, id = get(item, "name"), get(item, "call_id")
    if word(get(item, "type")) == CUSTOM:
        return Proposal(name, id=id, meta=CUSTOM, refused=Arguments(None, CallProblem.MALFORMED, FREE_TEXT))
    arguments = get(item, "arguments")
    cut = cut or word(get(item, "status")) not in COMPLETE
    return Proposal(name, "" if arguments is None else arguments, id, cut=cut)


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One input item `function_call_output` for each result, in order."""
    return [
        {
            "type": f"{CUSTOM if call.meta == CUSTOM else FUNCTION}_output",
            "call_id": wire_id(call),
            "output": result.to_content(),
        }
        for result in results
        for call in [call_of(result)]
    ]
