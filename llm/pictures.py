"""Pictures: those that stand in a request itself, in base64. Their bytes say which type they are and how large.

A conversation names them by a digest, so whoever keeps it, or counts it, never has the bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_PICTURE_BYTES = 10 * 1024 * 1024
MAX_PIXELS = 65_535  # of a side
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")  # an id
NOT_BASE64 = "This is not base64."
NO_DATA_URL = "A picture in a request is a data URL: data:image/png;base64,…"
NO_PICTURE = "By its bytes this is no PNG, JPEG, GIF or WebP whose width and height can be read."

_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)?(?:;[^;,]{1,100}){0,5};base64,", re.IGNORECASE)
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
# Of the markers of a JPEG: those that begin a frame, which has the measures, and those without a length behind them.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Measures:
    """What a picture is by its bytes."""

    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Picture:
    """One of them. ``id``: the digest of its bytes."""

    id: str
    content: bytes = field(repr=False)
    measures: Measures

    def to_segment(self) -> dict[str, Any]:
        """As a conversation names it."""
        return {
            "type": "image_ref",
            "id": self.id,
            "media_type": self.measures.media_type,
            "size_bytes": len(self.content),
            "width": self.measures.width,
            "height": self.measures.height,
        }


class PictureShelf:
    """The pictures of one request, by their ids."""

    def __init__(self) -> None:
        self.pictures: dict[str, Picture] = {}

    def add(self, picture: Picture) -> dict[str, Any]:
        """The segment in its place."""
        self.pictures[picture.id] = picture
        return picture.to_segment()


def is_data_url(text: object) -> bool:
    return isinstance(text, str) and text[:5].lower() == "data:"


def read_data_url(text: str, pointer: str) -> Picture:
    """Raises SchemaInvalid with the place, TooLarge."""
    head = _DATA_URL.match(text)
    if head is None:
        raise SchemaInvalid.at(pointer, NO_DATA_URL)
    return read_picture(text[head.end() :], pointer, claim=head[1] or "")


def read_picture(text: str, pointer: str, *, claim: str = "") -> Picture:
    """The picture in a text of base64. ``claim``: its type, as whoever sent it says. Raises as :func:`read_data_url`."""
    if len(text) > MAX_PICTURE_BYTES * 4 // 3 + 4:
        raise TooLarge(
            f"A picture has at most {MAX_PICTURE_BYTES // 1024**2} MiB.", details={"max_bytes": MAX_PICTURE_BYTES}
        )
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SchemaInvalid.at(pointer, NOT_BASE64) from None
    measures = measure_picture(content)
    if measures is None:
        raise SchemaInvalid.at(pointer, NO_PICTURE)
    claim = claim.lower()
    if claim and _ALIASES.get(claim, claim) != measures.media_type:
        raise SchemaInvalid.at(pointer, f"By its bytes it is {measures.media_type}.")
    return Picture("sha256:" + hashlib.sha256(content).hexdigest(), content, measures)


def measure_picture(content: bytes) -> Measures | None:
    """None for what is no picture, or has no measures that can be read. Nothing is decoded."""
    for begins, media_type, measure in _HEADS:
        if content.startswith(begins):
            sides = measure(content)
            if sides is not None and all(0 < side <= MAX_PIXELS for side in sides):
                return Measures(media_type, *sides)
    return None


def _measure_png(content: bytes) -> tuple[int, int] | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _measure_gif(content: bytes) -> tuple[int, int] | None:
    if len(content) < 10:
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _measure_jpeg(content: bytes) -> tuple[int, int] | None:
    for marker, at in _iter_segments(content):
        if marker in _FRAMES and len(content) >= at + 7:
            return int.from_bytes(content[at + 5 : at + 7]), int.from_bytes(content[at + 3 : at + 5])
    return None


def _iter_segments(content: bytes) -> Iterator[tuple[int, int]]:
    """(Marker, where its length stands), up to where the picture itself begins."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        at += 1 if marker == 0xFF else 2  # any number of these may stand before a marker
        if marker == 0xFF or marker in _BARE:
            continue
        if marker in (0xD9, 0xDA):
            return
        yield marker, at
        at += max(2, int.from_bytes(content[at : at + 2]))


def _measure_webp(content: bytes) -> tuple[int, int] | None:
    if content[8:12] != b"WEBP" or len(content) < 30:
        return None
    match content[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little")
        case b"VP8L" if content[20] == 0x2F:
            bits = int.from_bytes(content[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if content[23:26] == b"\x9d\x01\x2a":
            sides = int.from_bytes(content[26:28], "little"), int.from_bytes(content[28:30], "little")
            return sides[0] & 0x3FFF, sides[1] & 0x3FFF
    return None


_HEADS: tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int] | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _measure_png),
    (b"\xff\xd8\xff", "image/jpeg", _measure_jpeg),
    (b"GIF87a", "image/gif", _measure_gif),
    (b"GIF89a", "image/gif", _measure_gif),
    (b"RIFF", "image/webp", _measure_webp),
)
