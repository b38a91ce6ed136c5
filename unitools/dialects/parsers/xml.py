"""XML: the calls that a model's text proposes, and how they are answered.

Read are text, and a response of another dialect that holds text: a model that was told of its tools in the prompt is asked through
some provider's API. Text without a call that was written for the rendering proposes nothing.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem, to_json
from unitools.dialects.arguments import CUT, Arguments, read_text, refuse_arguments
from unitools.dialects.call_scanner import scan_calls
from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.model_json import MAX_BYTES
from unitools.dialects.parsers import anthropic, bedrock, gemini, langchain, openai, openai_responses
from unitools.dialects.parsers.proposals import Proposal, build_calls, get_answered_call, get_wire_id
from unitools.dialects.parsers.responses import WEAK, WHOLE, UnfoldedResponse, check_readable
from unitools.dialects.response_decoder import decode_response
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions
    from unitools.dialects.call_scanner import ScannedCall

TAG = "<tool_call "
INSIDE = 100  # the text of another dialect's response, which proposes nothing itself
OTHERS = tuple(each.unfold_response for each in (openai, openai_responses, anthropic, gemini, bedrock, langchain))
KEYS = frozenset({"name", "arguments"})

FENCED = "The call stands inside a code fence, as an example would, so it was not run. Write it outside of code fences."
SHAPE = 'The call was not run: between the tags stands {"name": …, "arguments": {…}} and nothing else.'


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The text, and whether it was cut; None where there is none."""
    response = decode_response(response)
    if isinstance(response, str):
        return UnfoldedResponse(WHOLE if TAG in response else WEAK, text=response)
    return next((answer for look_there in OTHERS if (answer := look_there(response))), None)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    response = decode_response(response)
    answer = unfold_response(response)
    if answer is None or isinstance(response, str):
        return answer.score if answer else 0
    return INSIDE if TAG in answer.text and not answer.calls else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson."""
    answer = check_readable(unfold_response(response), "xml")
    if len(answer.text) > MAX_BYTES or len(answer.text.encode(errors="replace")) > MAX_BYTES:
        raise ResponseTooLarge(f"The response cannot be read: its text is larger than {MAX_BYTES} bytes.")
    return build_calls((_proposal(each, cut=answer.cut) for each in scan_calls(answer.text, reading.key)), reading)


def _proposal(found: ScannedCall, *, cut: bool) -> Proposal:
    if found.fenced:
        return Proposal("", id=found.id, refused=Arguments(None, CallProblem.FENCED, FENCED))
    if cut or not found.closed:
        return Proposal("", found.payload, found.id, refused=refuse_arguments(JsonRefused("truncated", CUT)))
    try:
        value, fixes = read_text(found.payload)
    except JsonRefused as refusal:
        return Proposal("", found.payload, found.id, refused=refuse_arguments(refusal))
    if not isinstance(value, dict) or not value.keys() <= KEYS:
        return Proposal("", found.payload, found.id, refused=Arguments(None, CallProblem.MALFORMED, SHAPE))
    return Proposal(value.get("name"), value.get("arguments"), found.id, fixes=fixes)


def reply(results: Sequence[ToolResult]) -> str:
    """Text for the next message: one element for each result, in order. Inside is JSON without ``<``, so no result holds a tag."""
    return "\n".join(_element(get_answered_call(result), result) for result in results)


def _element(call: ToolCall, result: ToolResult) -> str:
    said: Any = result.to_content() if result.is_error else to_json(result.value)
    attributes = f'id="{escape(get_wire_id(call))}" name="{escape(call.provider_name)}" status="{result.status}"'
    return f"<tool_result {attributes}>{said.replace('<', chr(92) + 'u003c')}</tool_result>"
