"""Chunks of OpenAI Chat Completions, and of the many servers that speak it in their own way.

Servers differ in how they number calls: some number all of them 0, some none, and tell them apart by their ids; some repeat the whole
name in each chunk, some send arguments as an object.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from unitools.dialects.streams.base import Chunk, TextBuffer, get_chunks, get_index

HEAD = ("id", "created", "model", "system_fingerprint", "service_tier")
TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def is_chunk(chunk: Chunk) -> bool:
    return chunk.get("object") == "chat.completion.chunk" or any(
        "delta" in choice for choice in get_chunks(chunk.get("choices"))
    )


def may_be_first(chunk: Chunk) -> bool:
    """Azure begins with a chunk that has no choice and no kind."""
    return is_chunk(chunk) or chunk.get("choices") == []


class _Call:
    def __init__(self, id: str) -> None:
        self.id = id
        self.kind, self.name, self.arguments = "function", "", TextBuffer()

    def add(self, piece: Chunk) -> None:
        self.id = self.id or _text(piece.get("id"))
        self.kind = _text(piece.get("type")) or self.kind
        said = piece.get(self.kind)
        if not isinstance(said, dict):
            return
        if (name := _text(said.get("name"))) != self.name:
            self.name += name
        given = said.get("input" if self.kind == "custom" else "arguments")
        self.arguments.add(json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else given)

    def build(self) -> dict[str, Any]:
        given = "input" if self.kind == "custom" else "arguments"
        return {"id": self.id, "type": self.kind, self.kind: {"name": self.name, given: str(self.arguments)}}


class _Choice:
    def __init__(self) -> None:
        self.texts = {name: TextBuffer() for name in TEXTS}
        self.calls: list[_Call] = []
        self.places: dict[int, _Call] = {}  # the call that an index means now
        self.legacy = False
        self.finish_reason = ""

    def add(self, choice: Chunk) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for name, buffer in self.texts.items():
                buffer.add(delta.get(name))
            for piece in get_chunks(delta.get("tool_calls")):
                self._find_call(piece).add(piece)
            self.legacy = self.legacy or bool(delta.get("function_call"))
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason

    def _find_call(self, piece: Chunk) -> _Call:
        index, id = get_index(piece), _text(piece.get("id"))
        call = self.places.get(index)
        if call is None or (id and call.id and id != call.id):
            call = next((each for each in self.calls if id and each.id == id), None) or _Call(id)
            if call not in self.calls:
                self.calls.append(call)
            self.places[index] = call
        return call

    def build(self, index: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: str(buffer) for name, buffer in self.texts.items() if buffer}
        if self.calls:
            message["tool_calls"] = [call.build() for call in self.calls]
        if self.legacy:
            message["function_call"] = {}  # is refused by name, as in a whole response
        return {"index": index, "message": message, "finish_reason": self.finish_reason}


class ChatCollector:
    """The chunks of one completion."""

    dialect: ClassVar[str] = "openai"

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}

    @property
    def is_complete(self) -> bool:
        return bool(self._choices) and all(choice.finish_reason for choice in self._choices.values())

    def add(self, chunk: Chunk) -> None:
        self._head |= {name: chunk[name] for name in HEAD if chunk.get(name) and name not in self._head}
        if isinstance(chunk.get("usage"), dict):
            self._head["usage"] = chunk["usage"]  # comes last, behind the reason of the end
        for choice in get_chunks(chunk.get("choices")):
            self._choices.setdefault(get_index(choice), _Choice()).add(choice)

    def build_response(self) -> dict[str, Any]:
        choices = [choice.build(index) for index, choice in sorted(self._choices.items())]
        return {"object": "chat.completion", **self._head, "choices": choices}


def _text(thing: object) -> str:
    return thing if isinstance(thing, str) else ""
