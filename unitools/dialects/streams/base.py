"""Collector of a dialect: what each must do with its chunks."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.model_json import MAX_RESPONSE

Chunk = dict[str, Any]


class ChunkCollector(Protocol):
    """The chunks of one answer. A chunk is the provider's JSON, parsed."""

    dialect: ClassVar[str]

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        """Whether an answer of this dialect may begin with it."""

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said that the answer ends here, and why."""

    def add(self, chunk: Chunk) -> None:
        """Take one chunk. Raises ResponseTooLarge; UnreadableResponse for an answer that the provider gave up."""

    def build_response(self) -> dict[str, Any]:
        """The response as the provider answers a request that does not stream."""


class CollectedText:
    """Pieces of text that become one; to add one costs the same however many there are."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: object) -> None:
        """Anything but text is left out. Raises ResponseTooLarge."""
        if isinstance(piece, str) and piece:
            self._size += len(piece)
            if self._size > MAX_RESPONSE:
                raise ResponseTooLarge(f"The stream cannot be read: a text in it is larger than {MAX_RESPONSE} bytes.")
            self._pieces.append(piece)

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)


class CollectedFields:
    """Fields that a dialect does not look into: text goes on, lists grow, of everything else the last counts."""

    def __init__(self) -> None:
        self._texts: dict[str, CollectedText] = {}
        self._others: dict[str, Any] = {}

    def add(self, fields: Chunk) -> None:
        """Raises ResponseTooLarge."""
        for name, value in fields.items():
            if isinstance(value, str):
                self._texts.setdefault(name, CollectedText()).add(value)
            elif isinstance(value, list) and isinstance(held := self._others.get(name), list):
                held.extend(value)
            elif isinstance(value, list):
                self._others[name] = list(value)
            elif value is not None:
                self._others[name] = value

    def build(self) -> dict[str, Any]:
        return self._others | {name: str(text) for name, text in self._texts.items()}


def get_word(chunk: Chunk, name: str) -> str:
    """A text; empty for anything else."""
    value = chunk.get(name)
    return value if isinstance(value, str) else ""


def get_chunk(chunk: Chunk, name: str) -> Chunk:
    """An object; an empty one for anything else."""
    value = chunk.get(name)
    return value if isinstance(value, dict) else {}


def get_chunks(chunk: Chunk, name: str) -> list[Chunk]:
    """The objects of a list; none for anything else."""
    value = chunk.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def get_index(chunk: Chunk, name: str = "index") -> int | None:
    """A place in a list, where one is named."""
    index = chunk.get(name)
    return index if isinstance(index, int) else None


def leave_out(chunk: Chunk, *names: str) -> Chunk:
    """The other fields."""
    return {name: value for name, value in chunk.items() if name not in names}
