"""Packed leaves: how the leaf of a fact is written in its row in few bytes.

What is hashed, sealed, shown, exported and verified is the leaf, byte for byte. In its row there is a byte that says how it is packed,
then its text deflated with words that leaves have in common, then the ids and digests of the text as the 16 or 32 bytes that they
are: in the text a mark stands for each, since letters of chance cannot be deflated.

The first byte names the words too, ``leaf_words_1.txt`` as :mod:`scripts.leaf_words` has made them. They are never changed, or nothing
that was packed with them is readable any more; other words get another byte. A leaf is JSON, which begins with none of these bytes, so
rows in which the leaf itself stands are read as well. What somebody has changed so that it is nothing packed is read as it stands
there: it has another hash than the leaf that was sealed.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import models

from kernel.ids import ALPHABET, read_letters, write_letters

MAX_LEAF_BYTES = 16 * 1024
AS_IT_IS, PACKED = b"\0", b"\1"  # what a row begins with
WORDS = Path(__file__).with_name("leaf_words_1.txt").read_bytes()
# What stands in the text for a value: a byte that JSON has not, and one that says what it is; from _AGAIN on, the number of an
# earlier one that it is again.
_MARK = b"\1"
_ID, _DIGITS, _LONG_DIGITS, _AGAIN, _LAST = 2, 3, 4, 0x20, 0x7E
_SIZES = {_ID: 16, _DIGITS: 16, _LONG_DIGITS: 32}
_VALUE = re.compile(rb"([a-z]{3}_)([0-7][%s]{25})|((?:hmac-)?sha256:|)([0-9a-f]{64}|[0-9a-f]{32})" % ALPHABET.encode())
_LENGTHS = frozenset(
    (30, 32, 64, len("sha256:") + 64, len("hmac-sha256:") + 64)
)  # of such texts, by which most others are told apart
# By measurement: leaves are small, and both begin by copying a state of this size.
_LEVEL, _WINDOW, _MEMORY = 6, -13, 5
_DEFLATER = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=WORDS)
_INFLATER = zlib.decompressobj(_WINDOW, zdict=WORDS)


def pack_leaf(leaf: bytes) -> bytes:
    """As it is stored; whatever bytes it has, :func:`unpack_leaf` finds them again."""
    if len(leaf) <= MAX_LEAF_BYTES and _MARK not in leaf:
        text, values = mark_values(leaf)
        deflater = _DEFLATER.copy()
        packed = b"".join((PACKED, deflater.compress(text), deflater.flush(), *values))
        if len(packed) < len(leaf):
            return packed
    return AS_IT_IS + leaf if leaf[:1] in (AS_IT_IS, PACKED) else leaf


def unpack_leaf(stored: bytes) -> bytes:
    first = stored[:1]
    if first == PACKED:
        leaf = _unpack(stored)
        return stored if leaf is None else leaf
    return stored[1:] if first == AS_IT_IS else stored


def mark_values(leaf: bytes) -> tuple[bytes, list[bytes]]:
    """The text with marks, and the values that they stand for."""
    values: list[bytes] = []
    marks: dict[bytes, bytes] = {}
    parts = leaf.split(b'"')
    for place, part in enumerate(parts):
        if len(part) not in _LENGTHS or not (found := _VALUE.fullmatch(part)):
            continue
        prefix, letters, named, digits = found.groups()
        text = letters or digits
        if again := marks.get(text):
            parts[place] = (prefix or named) + again
            continue
        if _AGAIN + len(values) <= _LAST:
            marks[text] = _MARK + bytes((_AGAIN + len(values),))
        if letters:
            parts[place] = prefix + _MARK + bytes((_ID,))
            values.append(read_letters(letters.decode()).to_bytes(16))
        else:
            parts[place] = named + _MARK + bytes((_DIGITS if len(digits) == 32 else _LONG_DIGITS,))
            values.append(bytes.fromhex(digits.decode()))
    return b'"'.join(parts), values


def _unpack(stored: bytes) -> bytes | None:
    """None: somebody has changed it. No more is made of it than a leaf may have."""
    inflater = _INFLATER.copy()
    try:
        text = inflater.decompress(stored[1:], MAX_LEAF_BYTES + 1)
    except zlib.error:
        return None
    if not inflater.eof:
        return None
    values, at, size = inflater.unused_data, 0, len(text)
    first, *parts = text.split(_MARK)
    found, written = [first], list[bytes]()
    for part in parts:
        what = part[0] if part else 0
        if what >= _AGAIN:
            if what - _AGAIN >= len(written):
                return None
            value = written[what - _AGAIN]
        elif what in _SIZES:
            end = at + _SIZES[what]
            value = _write_value(what, values[at:end])
            written.append(value)
            at = end
        else:
            return None
        found += (value, part[1:])
        size += len(value) - 2
        if size > MAX_LEAF_BYTES:
            return None
    return b"".join(found) if at == len(values) and size <= MAX_LEAF_BYTES else None


@lru_cache(maxsize=4096)  # of a page of facts most name the same agents, tools and digests
def _write_value(what: int, value: bytes) -> bytes:
    return (write_letters(int.from_bytes(value)) if what == _ID else value.hex()).encode()


class PackedLeafField(models.BinaryField):  # type: ignore[type-arg]  # at run time it takes none
    """The bytes of a leaf, packed in the column."""

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return None if value is None else pack_leaf(bytes(value))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> bytes | None:
        del expression, connection
        return None if value is None else unpack_leaf(bytes(value))
