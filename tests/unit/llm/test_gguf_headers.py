"""GGUF headers: is what a file can have read and kept of it bounded, however large it is?"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from llm.providers import gguf_headers
from llm.providers.gguf_headers import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_ITEMS,
    MOST_TENSORS,
    MOST_VALUES,
    HeaderRefused,
    read_header,
)
from tests.support.gguf_files import write_gguf

if TYPE_CHECKING:
    from pathlib import Path

TEXT, LIST, BYTE = 8, 9, 0


def write_start(file: Path, *, tensors: int = 0, values: int = 0, then: bytes = b"", room: int = 0) -> Path:
    """``room``: bytes that follow, which take no place on the disk."""
    with file.open("wb") as opened:
        opened.write(struct.pack("<4sIQQ", b"GGUF", 3, tensors, values) + then)
        opened.truncate(opened.tell() + room)
    return file


def pack_list(kind: int, count: int) -> bytes:
    return struct.pack("<QIIQ", 0, LIST, kind, count)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("tensors", "values"), [(0, MOST_VALUES), (MOST_TENSORS, 0)])
def test_a_file_of_more_values_or_tensors_than_any_model_has_is_refused(
    tmp_path: Path, tensors: int, values: int
) -> None:
    file, room = tmp_path / "m.gguf", (tensors + values + 1) * 40  # zeros are values and tensors with empty names

    assert read_header(write_start(file, tensors=tensors, values=values, room=room))
    with pytest.raises(HeaderRefused, match="is damaged"):
        read_header(write_start(file, tensors=tensors and tensors + 1, values=values and values + 1, room=room))


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("kind", "size"), [(BYTE, 1), (TEXT, 8)])
def test_lists_have_a_bound_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, size: int) -> None:
    file = tmp_path / "m.gguf"
    with pytest.raises(HeaderRefused, match="is damaged"):
        read_header(write_start(file, values=1, then=pack_list(kind, MOST_ITEMS + 1), room=(MOST_ITEMS + 1) * size))

    monkeypatch.setattr(gguf_headers, "MOST_ITEMS", 100)
    half = pack_list(kind, 50) + bytes(50 * size)
    assert read_header(write_start(file, values=2, then=half * 2))
    with pytest.raises(HeaderRefused, match="is damaged"):
        read_header(write_start(file, values=3, then=half * 2 + pack_list(kind, 1), room=size))


@pytest.mark.req("LLM-9")
def test_a_header_has_a_bound_in_bytes(tmp_path: Path) -> None:
    """A text is as long as it likes, for it is passed over; all of them are not."""
    begun = struct.pack("<QIQ", 0, TEXT, MOST_BYTES - 100)

    assert read_header(write_start(tmp_path / "m.gguf", values=1, then=begun, room=MOST_BYTES))
    with pytest.raises(HeaderRefused, match="is damaged"):
        read_header(write_start(tmp_path / "m.gguf", values=20, then=begun, room=2 * MOST_BYTES))
    with pytest.raises(HeaderRefused, match="ends too early"):
        read_header(write_start(tmp_path / "m.gguf", values=1, then=begun, room=MOST_BYTES // 2))


@pytest.mark.req("LLM-9")
def test_names_of_tensors_are_short_and_only_those_that_are_sought_are_kept(tmp_path: Path) -> None:
    names = ["n" * LONGEST_NAME, "cls.weight", "output.weight"]
    file = write_gguf(tmp_path / "m.gguf", {}, [(name, (4,), bytes(16)) for name in names])

    header = read_header(file, {"cls.weight", "cls.output.weight"})

    assert (header.tensors, header.found) == (3, frozenset({"cls.weight"}))
    write_gguf(file, {}, [("n" * (LONGEST_NAME + 1), (4,), bytes(16))])
    with pytest.raises(HeaderRefused, match="is damaged"):
        read_header(file)
