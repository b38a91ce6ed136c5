"""Which calls does a response of Gemini propose, and how are they answered?

Read are a whole response, one of its contents, and a list of parts; in the words of the REST API and of the SDK. The arguments come as
objects, so nothing but the finish reason shows a cut: every reason counts as one but those that are known to end a whole answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.reading.openai import SEVERAL
from unitools.dialects.reading.proposals import Proposal, call_of, calls_of, plain_value
from unitools.dialects.reading.shapes import PART, SDK, WEAK, WHOLE, Answer, get, is_from, items, opened, readable, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import Reading

COMPLETE = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})


def look(response: object) -> Answer | None:
    """The response unfolded; None if it is of another dialect."""
    response = opened(response)
    if (candidates := items(get(response, "candidates"))) is not None:
        score = SDK if is_from(response, "google.genai", "google.generativeai", "google.ai") else WHOLE
        proposing = [each for each in candidates if any(_call(part) is not None for part in _parts(each))]
        if len(proposing) > 1:
            return Answer(score, trouble=SEVERAL)
        candidate = (proposing or candidates or [None])[0]
        reason = word(get(candidate, "finishReason", "finish_reason"))
        return _answer(_parts(candidate), score, cut=reason not in COMPLETE)
    if (parts := items(get(response, "parts"))) is not None and word(get(response, "role")) in {"", "model"}:
        return _answer(parts, PART, cut=False)
    if (listed := items(response)) and any(_call(part) is not None for part in listed):
        return _answer(listed, PART, cut=False)
    return None


def _parts(candidate: object) -> Sequence[Any]:
    return items(get(get(candidate, "content"), "parts")) or ()


def _call(part: object) -> Any:
    return get(part, "functionCall", "function_call")


def _answer(parts: Sequence[Any], score: int, *, cut: bool) -> Answer:
    calls = [part for part in parts if _call(part) is not None]
    said = "".join(word(get(part, "text")) for part in parts if not get(part, "thought"))
    return Answer(score if calls or score != PART else WEAK, calls, said, cut)


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape. Raises TooLarge, NotJson for text."""
    answer = look(response)
    return answer.score if answer else 0


def parse(response: object, reading: Reading) -> list[ToolCall]:
    """The calls in their order; `meta` is ``{"thought_signature": …}`` where the part has one, as it came.

    Raises:
        UnknownResponse, UnreadableResponse, TooLarge, NotJson: as the drivers say.
    """
    answer = readable(look(response), "gemini")
    return calls_of((_proposal(part, cut=answer.cut) for part in answer.calls), reading)


def _proposal(part: object, *, cut: bool) -> Proposal:
    call = _call(part)
    signature = get(part, "thoughtSignature", "thought_signature")
    partial = bool(get(call, "willContinue", "will_continue")) or get(call, "partialArgs", "partial_args") is not None
    return Proposal(
        get(call, "name"),
        get(call, "args"),
        get(call, "id"),
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
    call = call_of(result)
    said = {"error": result.to_content()} if result.is_error else {"output": plain_value(result.value)}
    return {**({"id": call.provider_id} if call.provider_id else {}), "name": call.provider_name, "response": said}
