"""Chunks of Gemini's streamGenerateContent: each is a response with the next parts of the answer."""

from __future__ import annotations

from typing import Any, ClassVar

from unitools.dialects.streams.base import Chunk, TextBuffer, get_chunks, get_index

HEAD = {
    "usageMetadata": "usage_metadata",
    "modelVersion": "model_version",
    "responseId": "response_id",
    "promptFeedback": "prompt_feedback",
}
KINDS = frozenset({"candidates", *HEAD, *HEAD.values()} - {"responseId", "response_id"})


def is_chunk(chunk: Chunk) -> bool:
    return bool(chunk.keys() & KINDS)


def _get(chunk: Chunk, name: str, also: str) -> Any:
    """A field by the REST API's name or by the Python SDK's."""
    value = chunk.get(name)
    return chunk.get(also) if value is None else value


class _Candidate:
    def __init__(self) -> None:
        self.parts: list[tuple[dict[str, Any], TextBuffer | None]] = []
        self.finish_reason = ""

    def add(self, candidate: Chunk) -> None:
        content = candidate.get("content")
        for part in get_chunks(content.get("parts") if isinstance(content, dict) else None):
            self._add_part(part)
        reason = _get(candidate, "finishReason", "finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def _add_part(self, part: dict[str, Any]) -> None:
        text, head = part.get("text"), {name: value for name, value in part.items() if name != "text"}
        if not isinstance(text, str):
            self.parts.append((head, None))
            return
        before, buffer = self.parts[-1] if self.parts else ({}, None)
        # A signature belongs to the part in which it came, so such a part stays by itself.
        if buffer is None or before != head or not head.keys() <= {"thought"}:
            buffer = TextBuffer()
            self.parts.append((head, buffer))
        buffer.add(text)

    def build(self, index: int) -> dict[str, Any]:
        parts = [head if text is None else {"text": str(text), **head} for head, text in self.parts]
        return {"content": {"role": "model", "parts": parts}, "finishReason": self.finish_reason, "index": index}


class ContentCollector:
    """The chunks of one answer."""

    dialect: ClassVar[str] = "gemini"

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._candidates: dict[int, _Candidate] = {}

    @property
    def is_complete(self) -> bool:
        """A prompt that is blocked has no candidate, and nothing follows."""
        if not self._candidates:
            return bool(self._head.get("promptFeedback"))
        return all(candidate.finish_reason for candidate in self._candidates.values())

    def add(self, chunk: Chunk) -> None:
        self._head |= {name: value for name, also in HEAD.items() if (value := _get(chunk, name, also)) is not None}
        for candidate in get_chunks(chunk.get("candidates")):
            self._candidates.setdefault(get_index(candidate), _Candidate()).add(candidate)

    def build_response(self) -> dict[str, Any]:
        candidates = [candidate.build(index) for index, candidate in sorted(self._candidates.items())]
        return {"candidates": candidates, **self._head}
