"""Buckets: how tags of which each is in few places only are written together.

Nine of ten tags of a call are its own: hashes, traces, ids. A row for each of them is ten times what it says, so those of a span of
the log are in buckets: hashes by their first digits, by which they are searched for, ids and traces by a check sum, since an id
begins with its time, and who calls chooses the trace. Spans are of levels: the newest leaves are in runs, as they were indexed, and
each longer span is made of eight of those before it, with eight times as many buckets, so that a bucket stays about as large and a
look-up reads a few of each level, however long the log is.

Written, a bucket has a check value and, for tags of one kind and length: how many, their bytes in order, and their places, in three
bytes each, of which the first bit says that it is the last of its tag.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from evidence.problems import SearchIndexDamaged
from evidence.search.tags import SHORT, TagSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Places = dict[bytes, list[int]]  # by tag, rising

RUNS = 0  # the level of what is not a whole span yet
# Leaves of a span, and how many bits say in which of its buckets it is, by level; of runs the leaves are those that they
# fill before they become a span. Places are 23 bits.
SPANS = (256, 256, 2_048, 16_384, 131_072, 1_048_576)
BITS = (0, 4, 7, 10, 13, 16)
MOST_PLACES = 64  # of a tag in a span; what is in more has rows of its own, of which a search reads those that it needs
_MAX_TAG = 256
_FIRST, _END = min(SHORT.values()), bytes([max(SHORT.values())[0] + 1])
_CHECK = struct.Struct(">I")
_HEAD = struct.Struct(">BBII")  # kind, length, tags, places
_PLACE = 3  # bytes
_LAST = 1 << 23


def is_bucketed(tag: bytes) -> bool:
    """Whether it is of those that are in few places as a rule, and written in few bytes."""
    return _FIRST <= tag[:1] < _END and 2 <= len(tag) <= _MAX_TAG


def part_of(tag: bytes, level: int) -> int:
    """In which bucket of a span a tag is."""
    whole = int.from_bytes(tag[1:3].ljust(2, b"\0")) if tag[:1] == SHORT["hash"] else crc32(tag) & 0xFFFF
    return whole >> 16 - BITS[level]


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
            written += [place.to_bytes(_PLACE) for place in of_tag]
        head = _HEAD.pack(kind, length, len(tags), len(written))
        body += b"".join((head, *(tag[1:] for tag in tags), *written))
    return _CHECK.pack(crc32(body)) + body


def decode_bucket(content: bytes, *, first: int) -> Places:
    """All of it. Raises :class:`~evidence.problems.SearchIndexDamaged`."""
    found: Places = {}
    for kind, length, begin, middle, end in _list_groups(content):
        at = middle
        for tag in range(begin, middle, length):
            of_tag, at = _read_places(content, at, end, first)
            found[_read_tag(content, bytes((kind,)), length, tag)] = of_tag
    return found


def find_in_bucket(content: bytes, span: TagSpan, *, first: int) -> Places:
    """The tags that are within ``span``, and their places. Raises :class:`~evidence.problems.SearchIndexDamaged`."""
    found: Places = {}
    lowest, highest, only = span.low[0], span.high[0], span.is_one
    for kind, length, begin, middle, end in _list_groups(content):
        if not lowest <= kind <= highest or (only and length != len(span.low) - 1):
            continue
        head, places_at = bytes((kind,)), -1
        if only:
            number = _find_tag(content, span.low[1:], begin, middle)
        else:
            read = partial(_read_tag, content, head, length)
            number = bisect_left(range(begin, middle, length), span.low, key=read)
        for at in range(begin + number * length, middle, length):
            tag = _read_tag(content, head, length, at)
            if tag >= span.high:
                break
            if places_at < 0:
                places_at = _find_places(content, (at - begin) // length, (middle - begin) // length, middle, end)
            found[tag], places_at = _read_places(content, places_at, end, first)
    return found


def _read_tag(content: bytes, head: bytes, length: int, at: int) -> bytes:
    return head + content[at : at + length]


def _find_tag(content: bytes, tag: bytes, begin: int, middle: int) -> int:
    """The number of a tag among those of its length; of one that is not there, a number that none has."""
    at = content.find(tag, begin, middle)
    while at >= 0 and (at - begin) % len(tag):  # from the middle of one to that of the next
        at = content.find(tag, at + 1, middle)
    return (at - begin) // len(tag) if at >= 0 else middle


def _list_groups(content: bytes) -> list[tuple[int, int, int, int, int]]:
    """Kind and length of tags, where they begin, and from where to where their places are."""
    if len(content) < _CHECK.size or _CHECK.unpack_from(content)[0] != crc32(memoryview(content)[_CHECK.size :]):
        raise SearchIndexDamaged
    groups = []
    at, size = _CHECK.size, len(content)
    while at < size:
        begin = at + _HEAD.size
        if begin > size:
            raise SearchIndexDamaged
        kind, length, tags, places = _HEAD.unpack_from(content, at)
        middle = begin + tags * length
        at = middle + places * _PLACE
        if at > size or not 0 < tags <= places or not length:
            raise SearchIndexDamaged
        groups.append((kind, length, begin, middle, at))
    return groups


def _find_places(content: bytes, number: int, tags: int, middle: int, end: int) -> int:
    """Where those of a tag begin."""
    if end - middle == tags * _PLACE:  # one each
        return middle + number * _PLACE
    at = middle
    for _ in range(number):
        _, at = _read_places(content, at, end, 0)
    return at


def _read_places(content: bytes, at: int, end: int, first: int) -> tuple[list[int], int]:
    """Those of a tag, which begin there, and where those of the next one do."""
    found = []
    while at < end:
        place = int.from_bytes(content[at : at + _PLACE])
        found.append(first + (place & ~_LAST))
        at += _PLACE
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
