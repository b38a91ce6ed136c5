"""Gemini contents: the hub's models for clients that speak as Google's generateContent does.

A proposal goes out when it is whole, text as it comes. What a provider wants back of its reasoning goes out as a thought signature.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, ClassVar

from llm.answers import FinishReason
from llm.served.gemini_problems import write_google_problem
from llm.served.gemini_requests import PARAMETERS, read_generation
from llm.served.openai_chat import read_text, write_data, write_hub
from llm.served.provider_states import write_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.problems import Problem
    from llm.answers import ChatDelta
    from llm.served.formats import Answered, ServedChat
    from llm.served.parameters import Parameter

FINISHES = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "safety": "SAFETY", "other": "OTHER"}
MALFORMED = "MALFORMED_FUNCTION_CALL"
UNUSABLE = "The model proposed a call whose arguments cannot be read, so no call of its answer is passed on."
AS_ARRAY = "as_array"  # of a stream: one JSON array instead of events


def write_usage(usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "promptTokenCount": usage["input_tokens"],
        "candidatesTokenCount": usage["output_tokens"],
        "totalTokenCount": usage["input_tokens"] + usage["output_tokens"],
        "cachedContentTokenCount": usage["cached_tokens"],
    }


def write_end(answer: dict[str, Any]) -> dict[str, Any]:
    """Why the answer ended, in a word of this format."""
    if _has_unusable_call(answer):
        return {"finishReason": MALFORMED, "finishMessage": UNUSABLE}
    return {"finishReason": FINISHES[answer["finish_reason"]]}


def _has_unusable_call(answer: dict[str, Any]) -> bool:
    is_whole = FinishReason(answer["finish_reason"]).is_whole
    return is_whole and any(each["arguments"] is None for each in answer["proposals"])


def list_parts(answer: dict[str, Any], about: Answered, *, text: str) -> list[dict[str, Any]]:
    """The text, and behind it the calls that a caller may make: none of an answer that was cut, or of which one cannot be used.

    The signature stands at the first call, as Google's models have it, else at the text.
    """
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    first_call = len(parts)
    if FinishReason(answer["finish_reason"]).is_whole and not _has_unusable_call(answer):
        parts += [write_call(each, about) for each in answer["proposals"]]
    if (state := answer.get("provider_state")) is not None:
        parts = parts or [{"text": ""}]
        signed = parts[first_call] if first_call < len(parts) else parts[0]
        signed["thoughtSignature"] = base64.b64encode(write_state(state).encode()).decode()
    return parts


def write_call(proposal: dict[str, Any], about: Answered) -> dict[str, Any]:
    call = {"id": proposal["call_id"], "name": about.name_tool(proposal["name"]), "args": proposal["arguments"]}
    return {"functionCall": call}


def write_response(about: Answered, parts: list[dict[str, Any]], **end: Any) -> dict[str, Any]:
    """A response, or a piece of one. ``end``: what its candidate says of its end."""
    candidate = {"content": {"role": "model", "parts": parts}, **end, "index": 0}
    return {"candidates": [candidate], "modelVersion": about.model, "responseId": about.call_id}


class ContentStreamWriter:
    """One answer as the pieces of a response: events, or one JSON array. An array of which the end failed is one all the same."""

    def __init__(self, about: Answered, *, as_array: bool) -> None:
        self._about, self._as_array = about, as_array
        self._spoke = self._began = False

    def add(self, delta: ChatDelta) -> str:
        if not delta.text:
            return ""
        self._spoke = True
        return self._write(write_response(self._about, [{"text": delta.text}]))

    def end(self, answer: dict[str, Any], warnings: tuple[str, ...] = ()) -> str:
        parts = list_parts(answer, self._about, text="" if self._spoke else read_text(answer))
        if self._spoke and not parts:
            parts = [{"text": ""}]  # Google's SDK takes a piece without parts for a broken answer
        last = write_response(self._about, parts, **write_end(answer))
        hub = write_hub(answer, self._about, (*self._about.warnings, *warnings))
        return self._write(last | {"usageMetadata": write_usage(answer["usage"]), "hub": hub}, is_last=True)

    def fail(self, problem: Problem) -> str:
        """The hub's reason stands beside: the headers, which have it elsewhere, are sent."""
        body = write_google_problem(problem)[1]
        return self._write(body | {"hub": {"call_id": self._about.call_id} | body["hub"]}, is_last=True)

    def _write(self, piece: dict[str, Any], *, is_last: bool = False) -> str:
        if not self._as_array:
            return write_data(piece)
        head, self._began = ",\n" if self._began else "[", True
        text = json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
        return head + text + ("]\n" if is_last else "")


class GeminiContents:
    """The format of ``…/models/{model}:generateContent``. The address says which ``model``, and whether a stream is wanted."""

    name: ClassVar = "gemini-contents"
    parameters: ClassVar[tuple[Parameter, ...]] = PARAMETERS

    def __init__(self, model: str = "", *, wants_stream: bool = False, as_array: bool = False) -> None:
        self._model, self._wants_stream, self._as_array = model, wants_stream, as_array

    def read(self, body: Any) -> ServedChat:
        options = {AS_ARRAY: True} if self._as_array else {}
        return read_generation(body, model=self._model, wants_stream=self._wants_stream, options=options)

    def write(self, answer: dict[str, Any], about: Answered) -> dict[str, Any]:
        parts = list_parts(answer, about, text=read_text(answer))
        said = write_response(about, parts, **write_end(answer))
        return said | {
            "usageMetadata": write_usage(answer["usage"]),
            "hub": write_hub(answer, about, about.warnings),
        }

    def open_stream(self, about: Answered, options: Mapping[str, Any]) -> ContentStreamWriter:
        return ContentStreamWriter(about, as_array=options.get(AS_ARRAY) is True)

    def write_problem(self, problem: Problem) -> tuple[int, dict[str, Any]]:
        return write_google_problem(problem)
