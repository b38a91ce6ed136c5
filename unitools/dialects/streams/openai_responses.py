"""Events of OpenAI Responses. The last one holds the whole response, and each item is repeated whole when it is done."""

from __future__ import annotations

from typing import Any, ClassVar

from unitools.dialects.errors import UnreadableResponse
from unitools.dialects.streams.base import Chunk, get_index

LAST = frozenset({"response.completed", "response.incomplete"})
FAILED = frozenset({"response.failed", "response.cancelled"})


def is_chunk(chunk: Chunk) -> bool:
    return isinstance(chunk.get("type"), str) and chunk["type"].startswith("response.")


class ResponseCollector:
    """The events of one response."""

    dialect: ClassVar[str] = "openai-responses"

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._response: dict[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        return self._response is not None

    def add(self, chunk: Chunk) -> None:
        """Raises UnreadableResponse for an answer that the provider gave up."""
        kind = chunk.get("type")
        if kind in FAILED:
            raise UnreadableResponse(
                f"The stream ended with {kind}: the provider gave up the answer. Ask the model again."
            )
        if kind == "response.output_item.done":
            self._items[get_index(chunk, "output_index")] = chunk.get("item")
        elif kind in LAST and isinstance(chunk.get("response"), dict):
            self._response = chunk["response"]

    def build_response(self) -> dict[str, Any]:
        response = self._response or {}
        # Some servers leave the items out of the last event, because each has been sent already.
        return (
            response
            if response.get("output")
            else {**response, "output": [self._items[at] for at in sorted(self._items)]}
        )
