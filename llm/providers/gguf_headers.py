"""GGUF headers: what a model's file of llama.cpp says of itself, read without loading it.

A file may be anything that somebody put into the folder, and is read before each call while it is refused. No length in it is
believed: nothing is read past its end, all that is counted has a bound that no model comes near, and of what it holds only short
single values are kept.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

MAGIC = b"GGUF"
VERSIONS = (2, 3)
POINTER = b"version https://git-lfs"  # what a clone has in the place of a large file
LONGEST = 1024  # bytes of the texts that are kept
LONGEST_NAME = 256  # bytes of a tensor's; llama.cpp takes 64
MOST_BYTES = 256 * 1024 * 1024  # of a header; large vocabularies take ten or twenty
MOST_VALUES = 10_000
MOST_TENSORS = 100_000
MOST_ITEMS = (
    4_000_000  # of all lists together: a vocabulary of 300,000 tokens comes with as many scores, types and more merges
)
CHUNK = 1024 * 1024
# Types of values by their numbers: how one is unpacked.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9

Value = int | float | bool | str


class HeaderRefused(Exception):
    """What is wrong with the file, as the end of a sentence that begins with its name."""


CUT = "ends too early: copy or download it again"
DAMAGED = "is damaged: copy or download it again"


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """``values``: the single ones by their keys, lists and long texts left out. ``tensors``: how many. ``found``: of those sought."""

    values: Mapping[str, Value]
    tensors: int
    found: frozenset[str]

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    def find_count(self, name: str) -> int | None:
        """A number that the file says of its architecture."""
        value = self.values.get(f"{self.architecture}.{name}")
        return value if type(value) is int else None


class _Bytes:
    """Those of the file, one after the other."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, min(size, MOST_BYTES)
        self._ending = DAMAGED if size > MOST_BYTES else CUT
        self._items = MOST_ITEMS

    def take(self, count: int) -> bytes:
        self._count_down(count)
        data = self._file.read(count)
        if len(data) < count:
            raise HeaderRefused(CUT)
        return data

    def skip(self, count: int) -> None:
        self._count_down(count)
        self._file.seek(count, io.SEEK_CUR)

    def _count_down(self, count: int) -> None:
        if count > self._left:
            raise HeaderRefused(self._ending)
        self._left -= count

    def unpack(self, kind: str) -> Value:
        layout = struct.Struct(f"<{kind}")
        value: Value = layout.unpack(self.take(layout.size))[0]
        return value

    def take_count(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def take_text(self) -> str | None:
        """None for one that is too long to be of interest."""
        length = self.take_count()
        if length > LONGEST:
            self.skip(length)
            return None
        return self.take(length).decode(errors="replace")

    def take_value(self, kind: int) -> Value | None:
        if kind in SCALARS:
            return self.unpack(SCALARS[kind])
        if kind == TEXT:
            return self.take_text()
        if kind != LIST:
            raise HeaderRefused(DAMAGED)
        self._skip_list()
        return None

    def _skip_list(self) -> None:
        kind, count = int.from_bytes(self.take(4), "little"), self.take_count()
        if count > self._items:
            raise HeaderRefused(DAMAGED)
        self._items -= count
        if kind in SCALARS:
            self.skip(count * struct.calcsize(f"<{SCALARS[kind]}"))
        elif kind == TEXT:
            self._skip_texts(count)
        else:
            raise HeaderRefused(DAMAGED)

    def _skip_texts(self, count: int) -> None:
        """A vocabulary has some hundred thousand."""
        read, seek, left = self._file.read, self._file.seek, self._left
        for _ in range(count):
            length = int.from_bytes(read(8), "little")
            left -= 8 + length
            if left < 0:
                raise HeaderRefused(self._ending)
            if length > LONGEST:
                seek(length, io.SEEK_CUR)
            else:
                read(length)  # which is faster
        self._left = left

    def take_tensor(self) -> tuple[str, int]:
        """Its name, and where its numbers begin."""
        length = self.take_count()
        if length > LONGEST_NAME:
            raise HeaderRefused(DAMAGED)
        name = self.take(length).decode(errors="replace")
        dimensions = int.from_bytes(self.take(4), "little")
        if dimensions > 8:
            raise HeaderRefused(DAMAGED)
        self.skip(8 * dimensions + 4)
        return name, self.take_count()


def read_header(file: Path, sought: AbstractSet[str] = frozenset()) -> GgufHeader:
    """``sought``: names of tensors. Raises HeaderRefused; OSError where the file cannot be read."""
    size = file.stat().st_size
    with file.open("rb", buffering=CHUNK) as opened:
        pieces = _Bytes(opened, size)
        beginning = opened.read(len(POINTER))
        opened.seek(0)
        _check_beginning(beginning, pieces)
        tensors, values = pieces.take_count(), pieces.take_count()
        if tensors > MOST_TENSORS or values > MOST_VALUES:
            raise HeaderRefused(DAMAGED)
        said: dict[str, Value] = {}
        for _ in range(values):
            key = pieces.take_text()
            value = pieces.take_value(int.from_bytes(pieces.take(4), "little"))
            if key is not None and value is not None:
                said[key] = value
        found, last = set(), 0
        for _ in range(tensors):
            name, place = pieces.take_tensor()
            last = max(last, place)
            if name in sought:
                found.add(name)
        # Whether the last one is whole, the runtime finds.
        if tensors and last >= size - opened.tell():
            raise HeaderRefused(CUT)
    return GgufHeader(said, tensors, frozenset(found))


def _check_beginning(seen: bytes, pieces: _Bytes) -> None:
    if seen.startswith(POINTER):
        raise HeaderRefused("is a pointer of Git LFS and not the model itself: fetch it with `git lfs pull`")
    if not seen:
        raise HeaderRefused("is empty: copy or download it again")
    if not seen.startswith(MAGIC):
        raise HeaderRefused("is no GGUF file, the format that llama.cpp reads: convert the model, or take a GGUF of it")
    pieces.skip(len(MAGIC))
    version = int.from_bytes(pieces.take(4), "little")
    if version not in VERSIONS:
        raise HeaderRefused("is of a version of GGUF that is not read here: convert the model with a present llama.cpp")
