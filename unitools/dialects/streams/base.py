"""Collector of a dialect: what each must do with its chunks."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.parsers.responses import MAX_RESPONSE

Chunk = dict[str, Any]


class ChunkCollector(Protocol):
    """The chunks of one answer. A chunk is the provider's JSON, parsed."""

    dialect: ClassVar[str]

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said that the answer ends here, and why."""

    def add(self, chunk: Chunk) -> None:
        """Take one chunk. Raises ResponseTooLarge."""

    def build_response(self) -> dict[str, Any]:
        """The response as the provider answers a request that does not stream."""


class TextBuffer:
    """Pieces of text that become one; `add` costs the same however much there is already."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: object) -> None:
        """Anything but text is left out. Raises ResponseTooLarge."""
        if not isinstance(piece, str) or not piece:
            return
        self._size += len(piece)
        if self._size > MAX_RESPONSE:
            raise ResponseTooLarge(f"The stream cannot be read: a text in it is larger than {MAX_RESPONSE} bytes.")
        self._pieces.append(piece)

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)


def get_chunks(thing: object) -> list[Chunk]:
    """The objects of a list; none for anything else."""
    return [each for each in thing if isinstance(each, dict)] if isinstance(thing, list) else []


def get_index(chunk: Chunk, name: str = "index") -> int:
    """A place in a list, 0 where none is named."""
    index = chunk.get(name)
    return index if isinstance(index, int) else 0
