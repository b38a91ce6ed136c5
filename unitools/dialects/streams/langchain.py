"""Chunks of LangChain: an ``AIMessageChunk`` each, whose ``tool_call_chunks`` hold pieces of the arguments as text.

The pieces of a call have one ``index``; where a provider gives none, each is a whole call.
"""

from __future__ import annotations

from typing import Any, ClassVar

from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.parsers.proposals import LONGEST, MOST
from unitools.dialects.streams.base import Chunk, CollectedText, get_chunk, get_chunks, get_word

PIECE = "AIMessageChunk"
# Of the end, as the provider behind it calls it.
REASONS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")


class _Call:
    def __init__(self) -> None:
        self.id = self.name = ""
        self.args = CollectedText()

    def add(self, piece: Chunk) -> None:
        self.id = self.id or get_word(piece, "id")
        if len(self.name) <= LONGEST:
            self.name += get_word(piece, "name")
        self.args.add(piece.get("args"))

    def build(self) -> dict[str, Any]:
        return {"type": "tool_call_chunk", "id": self.id, "name": self.name, "args": str(self.args)}


class MessageChunkCollector:
    """The chunks of one message."""

    dialect: ClassVar[str] = "langchain"

    def __init__(self) -> None:
        self._calls: dict[Any, _Call] = {}
        self._text = CollectedText()
        self._about: dict[str, Any] = {}
        self._usage: Chunk = {}
        self._ended = False

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        return get_word(chunk, "type") == PIECE

    @property
    def is_complete(self) -> bool:
        return self._ended or any(self._about.get(name) for name in (*REASONS, "status"))

    def add(self, chunk: Chunk) -> None:
        content = chunk.get("content")
        self._text.add(content)
        for part in get_chunks(chunk, "content"):
            self._text.add(part.get("text") if part.get("type") == "text" else None)
        for piece in get_chunks(chunk, "tool_call_chunks"):
            index = piece.get("index")
            key = len(self._calls) if index is None else f"index {index}"
            if key not in self._calls and len(self._calls) >= MOST:
                raise ResponseTooLarge(f"The stream cannot be read: it proposes more than {MOST} calls.")
            self._calls.setdefault(key, _Call()).add(piece)
        self._about |= {name: value for name, value in get_chunk(chunk, "response_metadata").items() if value}
        self._usage = get_chunk(chunk, "usage_metadata") or self._usage
        self._ended = self._ended or chunk.get("chunk_position") == "last"

    def build_response(self) -> dict[str, Any]:
        said = {"type": PIECE, "content": str(self._text), "response_metadata": self._about, "chunk_position": "last"}
        pieces = [call.build() for call in self._calls.values()]
        return said | {"tool_calls": [], "tool_call_chunks": pieces, "usage_metadata": self._usage}
