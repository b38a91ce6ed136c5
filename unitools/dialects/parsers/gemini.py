"""Gemini: the calls that a response proposes, and how they are answered.

Read are a whole response, one of its contents, and a list of parts; in the words of the REST API and of the SDK. The arguments come as
objects, so nothing but the finish reason shows a cut: every reason counts as one but those that are known to end a whole answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.parsers.openai import SEVERAL
from unitools.dialects.parsers.proposals import Proposal, build_calls, convert_to_json, get_answered_call
from unitools.dialects.parsers.responses import (
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
)
from unitools.dialects.response_decoder import decode_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import ReadOptions

COMPLETE = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})


def unfold_response(response: object) -> UnfoldedResponse | None:
    """The response unfolded; None if it is of another dialect."""
    response = decode_response(response)
    if (candidates := get_items(get_field(response, "candidates"))) is not None:
        score = SDK if is_from(response, "google.genai", "google.generativeai", "google.ai") else WHOLE
        proposing = [each for each in candidates if any(_call(part) is not None for part in _parts(each))]
        if len(proposing) > 1:
            return UnfoldedResponse(score, trouble=SEVERAL)
        candidate = (proposing or candidates or [None])[0]
        reason = get_text(get_field(candidate, "finishReason", "finish_reason"))
        return _answer(_parts(candidate), score, cut=reason not in COMPLETE)
    if (parts := get_items(get_field(response, "parts"))) is not None and get_text(get_field(response, "role")) in {
        "",
        "model",
    }:
        return _answer(parts, PART, cut=False)
    if (listed := get_items(response)) and any(_call(part) is not None for part in listed):
        return _answer(listed, PART, cut=False)
    return None


def _parts(candidate: object) -> Sequence[Any]:
    return get_items(get_field(get_field(candidate, "content"), "parts")) or ()


def _call(part: object) -> Any:
    return get_field(part, "functionCall", "function_call")


def _answer(parts: Sequence[Any], score: int, *, cut: bool) -> UnfoldedResponse:
    calls = [part for part in parts if _call(part) is not None]
    said = "".join(get_text(get_field(part, "text")) for part in parts if not get_field(part, "thought"))
    return UnfoldedResponse(score if calls or score != PART else WEAK, calls, said, cut)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises ResponseTooLarge, NotJson for text."""
    answer = unfold_response(response)
    return answer.score if answer else 0


def parse(response: object, reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order; `meta` is ``{"thought_signature": …}`` where the part has one, as it came.

    Raises:
        UnknownResponse, UnreadableResponse, ResponseTooLarge, NotJson: as the drivers say.
    """
    answer = check_readable(unfold_response(response), "gemini")
    return build_calls((_proposal(part, cut=answer.cut) for part in answer.calls), reading)


def _proposal(part: object, *, cut: bool) -> Proposal:
    call = _call(part)
    signature = get_field(part, "thoughtSignature", "thought_signature")
    partial = (
        bool(get_field(call, "willContinue", "will_continue"))
        or get_field(call, "partialArgs", "partial_args") is not None
    )
    return Proposal(
        get_field(call, "name"),
        get_field(call, "args"),
        get_field(call, "id"),
        cut=cut or partial,
        meta=None if signature is None else {"thought_signature": signature},
    )


def reply(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One content of the role `user` with a `functionResponse` for each result, in order; none for none.

    A call without an id is answered without one, so there the order and the name must tell. The thought signature stays in the
    model's own content, which the caller sends back before this one.
    """
    parts = [{"functionResponse": _response(result)} for result in results]
    return [{"role": "user", "parts": parts}] if parts else []


def _response(result: ToolResult) -> dict[str, Any]:
    call = get_answered_call(result)
    said = {"error": result.to_content()} if result.is_error else {"output": convert_to_json(result.value)}
    return {**({"id": call.provider_id} if call.provider_id else {}), "name": call.provider_name, "response": said}
