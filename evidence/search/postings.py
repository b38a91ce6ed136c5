"""Postings: how the leaves of a block that have a tag are written in few bytes.

In memory they are one number: bit ``n`` stands for the block's leaf ``n``, so that "both", "either" and "not" are ``&``, ``|`` and
``& ~``. Stored, few of them are two bytes each, and many a map of a bit each, which is one byte longer than it needs to be: an odd
length says that it is a map.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = 2048  # leaves
_MAP_BYTES = BLOCK // 8
ALL = (1 << BLOCK) - 1


def encode(bits: int) -> bytes:
    if bits.bit_count() * 2 >= _MAP_BYTES:
        return b"\0" + bits.to_bytes(_MAP_BYTES)
    return b"".join(place.to_bytes(2) for place in iter_rising(bits))


def decode(stored: bytes) -> int:
    if len(stored) % 2:
        return int.from_bytes(stored)
    bits = 0
    for place in struct.unpack(f">{len(stored) // 2}H", stored):
        bits |= 1 << place
    return bits


def union_postings(each_stored: Iterable[bytes]) -> int:
    bits = 0
    for stored in each_stored:
        bits |= decode(stored)
    return bits


def iter_rising(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def iter_falling(bits: int) -> Iterator[int]:
    while bits:
        highest = bits.bit_length() - 1
        yield highest
        bits ^= 1 << highest
