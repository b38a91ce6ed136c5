"""Chunks of OpenAI Chat Completions, and of the many servers that speak it in their own way.

Servers differ in how they number calls: some number all of them 0, some none, and tell them apart by their ids; some repeat the whole
name in each chunk, some send arguments as an object. What a delta holds beside calls is carried along, for some servers want it back.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.parsers.proposals import LONGEST, MOST
from unitools.dialects.streams.base import (
    Chunk,
    CollectedFields,
    CollectedText,
    get_chunk,
    get_chunks,
    get_index,
    get_word,
    leave_out,
)

HEAD = ("id", "created", "model", "system_fingerprint", "service_tier")


class _Call:
    def __init__(self) -> None:
        self.id = ""
        self.kind = "function"
        self.name = ""
        self.text = CollectedText()  # of the arguments, as most servers send them
        self.object: Chunk | None = None  # as some do
        self.others = CollectedFields()

    def add(self, piece: Chunk) -> None:
        self.id = self.id or get_word(piece, "id")
        self.kind = get_word(piece, "type") or self.kind
        said = get_chunk(piece, self.kind)
        if (name := get_word(said, "name")) != self.name and len(self.name) <= LONGEST:
            self.name += name
        given = said.get("input" if self.kind == "custom" else "arguments")
        self.text.add(given)
        self.object = given if isinstance(given, dict) else self.object
        self.others.add(leave_out(piece, "index", "id", "type", self.kind))

    def build(self) -> dict[str, Any]:
        given = "input" if self.kind == "custom" else "arguments"
        said = {"name": self.name, given: str(self.text) if self.object is None else self.object}
        return {"id": self.id, "type": self.kind, self.kind: said, **self.others.build()}


class CallPlaces:
    """Which call each piece of one belongs to, by its place among the calls of the answer."""

    def __init__(self) -> None:
        self._ids: list[str] = []  # of the calls, by their places
        self._by_id: dict[str, int] = {}
        self._by_index: dict[int, int] = {}  # the call that an index means now

    def find(self, pieces: list[Chunk]) -> list[int]:
        """The places of the pieces of one delta. Raises ResponseTooLarge."""
        begun, found = set[int](), []
        for piece in pieces:
            index, is_new = get_index(piece) or 0, False
            if not get_word(piece, "id") and index in begun:  # two whole calls that nothing tells apart
                is_new = bool(get_word(get_chunk(piece, "function"), "name"))
            begun.add(index)
            found.append(self._find_place(index, piece, is_new=is_new))
        return found

    def _find_place(self, index: int, piece: Chunk, *, is_new: bool) -> int:
        id, is_named = get_word(piece, "id"), bool(get_word(get_chunk(piece, "function"), "name"))
        place = None if is_new else self._by_index.get(index)
        if place is not None and id and self._ids[place] not in {"", id}:
            # Servers that number all calls alike begin each with its name; others give each piece of one call another id.
            place = self._by_id.get(id, None if is_named else place)
            id = id if place is None or self._ids[place] == id else ""
        if place is None and id:
            place = self._by_id.get(id)
        if place is None:
            place = len(self._ids)
            if place >= MOST:
                raise ResponseTooLarge(f"The stream cannot be read: it proposes more than {MOST} calls.")
            self._ids.append(id)
        self._ids[place] = self._ids[place] or id
        if id:
            self._by_id[id] = place
        self._by_index[index] = place
        return place


class _Choice:
    def __init__(self) -> None:
        self.others = CollectedFields()
        self.calls: list[_Call] = []
        self.places = CallPlaces()
        self.legacy = False
        self.finish_reason = ""

    def add(self, choice: Chunk) -> None:
        delta = get_chunk(choice, "delta")
        pieces = get_chunks(delta, "tool_calls")
        for place, piece in zip(self.places.find(pieces), pieces, strict=True):
            if place == len(self.calls):
                self.calls.append(_Call())
            self.calls[place].add(piece)
        self.legacy = self.legacy or bool(delta.get("function_call"))
        self.others.add(leave_out(delta, "role", "tool_calls", "function_call"))
        self.finish_reason = get_word(choice, "finish_reason") or self.finish_reason

    def build(self, index: int) -> dict[str, Any]:
        message = {"role": "assistant", "content": None, **self.others.build()}
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
        self._choices: defaultdict[int, _Choice] = defaultdict(_Choice)

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        if chunk.get("object") == "chat.completion.chunk":
            return True
        choices = get_chunks(chunk, "choices")
        # Azure begins with a chunk that has no choice and no kind.
        return any("delta" in choice for choice in choices) or "prompt_filter_results" in chunk

    @property
    def is_complete(self) -> bool:
        return bool(self._choices) and all(choice.finish_reason for choice in self._choices.values())

    def add(self, chunk: Chunk) -> None:
        self._head |= {name: chunk[name] for name in HEAD if chunk.get(name) and name not in self._head}
        if usage := get_chunk(chunk, "usage"):
            self._head["usage"] = usage  # comes last, behind the reason of the end
        for choice in get_chunks(chunk, "choices"):
            self._choices[get_index(choice) or 0].add(choice)

    def build_response(self) -> dict[str, Any]:
        choices = [choice.build(index) for index, choice in sorted(self._choices.items())]
        return {"object": "chat.completion", **self._head, "choices": choices}
