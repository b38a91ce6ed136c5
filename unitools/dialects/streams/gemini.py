"""Chunks of Gemini's streamGenerateContent: each is a response with the next parts of the answer."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from unitools.dialects.streams.base import Chunk, CollectedText, get_chunk, get_chunks, get_index, get_word, leave_out
from unitools.dialects.streams.gemini_calls import PartialCall, is_partial

# By the REST API's name, and by the Python SDK's.
HEAD = {
    "usageMetadata": "usage_metadata",
    "modelVersion": "model_version",
    "responseId": "response_id",
    "promptFeedback": "prompt_feedback",
}
KINDS = frozenset({"candidates", *HEAD, *HEAD.values()} - {"responseId", "response_id"})


class _Candidate:
    def __init__(self) -> None:
        self.parts: list[tuple[Chunk, CollectedText | PartialCall | None]] = []
        self.others: dict[str, Any] = {}
        self.finish_reason = ""

    def add(self, candidate: Chunk) -> None:
        for part in get_chunks(get_chunk(candidate, "content"), "parts"):
            self._add_part(part)
        reason = get_word(candidate, "finishReason") or get_word(candidate, "finish_reason")
        self.finish_reason = reason or self.finish_reason
        self.others |= leave_out(candidate, "content", "index", "finishReason", "finish_reason")

    def _add_part(self, part: Chunk) -> None:
        text, head = part.get("text"), leave_out(part, "text")
        name = "functionCall" if "functionCall" in part else "function_call"
        before = self.parts[-1][1] if self.parts else None
        if name in part and (is_partial(call := get_chunk(part, name)) or _is_open(before)):
            if not isinstance(before, PartialCall) or not before.is_open:
                self.parts.append((leave_out(head, name), before := PartialCall()))
            before.add(call)
            return
        if not isinstance(text, str):
            self.parts.append((head, None))
            return
        head_before, collected = self.parts[-1] if self.parts else ({}, None)
        # A signature belongs to the part in which it came, so such a part stays by itself.
        if not isinstance(collected, CollectedText) or head_before != head or not head.keys() <= {"thought"}:
            collected = CollectedText()
            self.parts.append((head, collected))
        collected.add(text)

    def build(self, index: int) -> dict[str, Any]:
        parts = [_build_part(head, held) for head, held in self.parts]
        content = {"role": "model", "parts": parts}
        return {**self.others, "content": content, "finishReason": self.finish_reason, "index": index}


def _is_open(held: object) -> bool:
    return isinstance(held, PartialCall) and held.is_open


def _build_part(head: Chunk, held: CollectedText | PartialCall | None) -> Chunk:
    if isinstance(held, PartialCall):
        return {**head, "functionCall": held.build()}
    return head if held is None else {"text": str(held), **head}


class ContentCollector:
    """The chunks of one answer."""

    dialect: ClassVar[str] = "gemini"

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._candidates: defaultdict[int, _Candidate] = defaultdict(_Candidate)

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        return bool(chunk.keys() & KINDS)

    @property
    def is_complete(self) -> bool:
        """Of a prompt that is blocked there is no candidate, and nothing follows."""
        if not self._candidates:
            feedback = get_chunk(self._head, "promptFeedback")
            return bool(get_word(feedback, "blockReason") or get_word(feedback, "block_reason"))
        return all(candidate.finish_reason for candidate in self._candidates.values())

    def add(self, chunk: Chunk) -> None:
        for name, also in HEAD.items():
            value = chunk.get(name, chunk.get(also))
            if value is not None:
                self._head[name] = value
        for candidate in get_chunks(chunk, "candidates"):
            self._candidates[get_index(candidate) or 0].add(candidate)

    def build_response(self) -> dict[str, Any]:
        candidates = [candidate.build(index) for index, candidate in sorted(self._candidates.items())]
        return {"candidates": candidates, **self._head}
