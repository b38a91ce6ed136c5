"""Buckets: how tags of which each is in few places only are written together.

Nine of ten tags of a call are its own: hashes, traces, ids. A row for each of them is ten times what it says, so those of a span of
the log are in buckets: by their first digits, or the last of an id, whose first are its time. Spans are of levels: the newest leaves
are in runs, as they were indexed, and each longer span is made of eight of those before it, with eight times as many buckets, so that
a bucket stays about as large and a look-up reads a few of each level, however long the log is.

Written, a bucket has a check value and, for tags of one kind and length: how many, their bytes in order, and their places, in three
bytes each, of which the first bit says that it is the last of its tag.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING
from zlib import crc32

from evidence.problems import SearchIndexDamaged
from evidence.search.tags import SHORT, TagSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Places = dict[bytes, list[int]]  # by tag, rising

RUNS = 0  # the level of what is not a whole span yet
# Leaves of a span, and how many bits of a tag say in which of its buckets it is, by level; of runs the leaves are those that they
# fill before they become a span. Places are 23 bits.
SPANS = (256, 256, 2_048, 16_384, 131_072, 1_048_576)
BITS = (0, 4, 7, 10, 13, 16)
MOST_PLACES = 64  # of a tag in a span; what is in more has rows of its own, of which a search reads those that it needs
_MAX_TAG = 256
_FIRST, _END = min(SHORT.values()), bytes([max(SHORT.values())[0] + 1])
_CHECK = struct.Struct(">I")
_HEAD = struct.Struct(">BBII")  # kind, length, tags, places
_LAST = 1 << 23


def is_bucketed(tag: bytes) -> bool:
    """Whether it is of those that are in few places as a rule, and written in few bytes."""
    return _FIRST <= tag[:1] < _END and 2 <= len(tag) <= _MAX_TAG


def part_of(tag: bytes, level: int) -> int:
    """In which bucket of a span a tag is."""
    digits = tag[1:3] if tag[:1] == SHORT["hash"] else tag[1:][-2:]
    return int.from_bytes(digits.ljust(2, b"\0")) >> 16 - BITS[level]


def find_parts(span: TagSpan, level: int) -> tuple[int, int] | None:
    """The first and the last bucket that may have tags of ``span``. None: no bucket has such tags."""
    if span.high <= _FIRST or span.low >= _END:
        return None
    if span.is_one:
        return (part_of(span.low, level),) * 2
    if span.low[:1] == span.high[:1] == SHORT["hash"]:
        return part_of(span.low, level), part_of(span.high, level)
    return 0, (1 << BITS[level]) - 1


def encode_bucket(places: Mapping[bytes, Iterable[int]], *, first: int) -> bytes:
    """``first``: the place with which its span begins."""
    groups: dict[tuple[int, int], list[bytes]] = {}
    for tag in sorted(places):
        groups.setdefault((tag[0], len(tag) - 1), []).append(tag)
    body = b""
    for (kind, length), tags in groups.items():
        written = []
        for tag in tags:
            of_tag = sorted({place - first for place in places[tag]})
            of_tag[-1] |= _LAST
            written += [place.to_bytes(3) for place in of_tag]
        head = _HEAD.pack(kind, length, len(tags), len(written))
        body += b"".join((head, *(tag[1:] for tag in tags), *written))
    return _CHECK.pack(crc32(body)) + body


def decode_bucket(content: bytes, *, first: int) -> Places:
    """All of it. Raises :class:`~evidence.problems.SearchIndexDamaged`."""
    found: Places = {}
    for group in _groups(content):
        at = 0
        for number in range(group.count):
            of_tag, at = _read_places(group.places, at, first)
            found[group.tag(number)] = of_tag
    return found


def find_in_bucket(content: bytes, span: TagSpan, *, first: int) -> Iterator[tuple[bytes, list[int]]]:
    """The tags that are within ``span``, and their places. Raises :class:`~evidence.problems.SearchIndexDamaged`."""
    for group in _groups(content):
        number = bisect_left(group, span.low)
        if number == group.count or group.tag(number) >= span.high:
            continue
        at = 0
        for _ in range(number if len(group.places) > 3 * group.count else 0):
            _, at = _read_places(group.places, at, first)
        at = at or 3 * number
        while number < group.count and (tag := group.tag(number)) < span.high:
            of_tag, at = _read_places(group.places, at, first)
            yield tag, of_tag
            number += 1


class _Group:
    """Tags of one kind and length: a sequence, of which only those that are looked at are made."""

    __slots__ = ("count", "kind", "length", "places", "tags")

    def __init__(self, kind: int, length: int, count: int, tags: bytes, places: bytes) -> None:
        self.kind, self.length, self.count = bytes((kind,)), length, count
        self.tags, self.places = tags, places

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        return self.tag(number)

    def tag(self, number: int) -> bytes:
        return self.kind + self.tags[number * self.length : (number + 1) * self.length]


def _groups(content: bytes) -> Iterator[_Group]:
    if len(content) < _CHECK.size or _CHECK.unpack_from(content)[0] != crc32(content[_CHECK.size :]):
        raise SearchIndexDamaged
    at = _CHECK.size
    while at < len(content):
        if at + _HEAD.size > len(content):
            raise SearchIndexDamaged
        kind, length, count, places = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        middle, end = at + count * length, at + count * length + places * 3
        if end > len(content) or not 0 < count <= places or not length:
            raise SearchIndexDamaged
        yield _Group(kind, length, count, content[at:middle], content[middle:end])
        at = end


def _read_places(written: bytes, at: int, first: int) -> tuple[list[int], int]:
    """Those of a tag, which begin there, and where those of the next one do."""
    found = []
    while at < len(written):
        place = int.from_bytes(written[at : at + 3])
        found.append(first + (place & ~_LAST))
        at += 3
        if place & _LAST:
            return found, at
    raise SearchIndexDamaged


def cut_span(low: int, high: int) -> Iterator[tuple[int, int, int]]:
    """Level, begin and end of what the leaves from ``low`` up to ``high`` are written as: whole spans where they are there, runs
    before and behind."""
    while low < high:
        for level in range(len(SPANS) - 1, RUNS, -1):
            if low % SPANS[level] == 0 and low + SPANS[level] <= high:
                break
        else:
            level = RUNS
        end = low + SPANS[level] if level > RUNS else min(high, low - low % SPANS[RUNS] + SPANS[RUNS])
        yield level, low, end
        low = end
