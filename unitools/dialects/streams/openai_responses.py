"""Events of OpenAI Responses. The last one holds the whole response, and each item is repeated whole when it is done."""

from __future__ import annotations

from typing import Any, ClassVar

from unitools.dialects.errors import UnreadableResponse
from unitools.dialects.streams.base import Chunk, get_chunk, get_index, get_word

LAST = frozenset({"response.completed", "response.incomplete"})
FAILED = frozenset({"response.failed", "response.cancelled"})


class ResponseCollector:
    """The events of one response."""

    dialect: ClassVar[str] = "openai-responses"

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._response: dict[str, Any] = {}

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        return get_word(chunk, "type").startswith("response.")

    @property
    def is_complete(self) -> bool:
        return bool(self._response)

    def add(self, chunk: Chunk) -> None:
        kind = get_word(chunk, "type")
        if kind in FAILED:
            raise UnreadableResponse(
                f"The stream ended with {kind}: the provider gave up the answer. Ask the model again."
            )
        if kind == "response.output_item.done":
            index = get_index(chunk, "output_index")
            self._items[len(self._items) if index is None else index] = chunk.get("item")
        elif kind in LAST:
            self._response = get_chunk(chunk, "response")

    def build_response(self) -> dict[str, Any]:
        if self._response.get("output"):
            return self._response
        # Some servers leave the items out of the last event, because each has been sent already.
        return {**self._response, "output": [self._items[at] for at in sorted(self._items)]}
