"""Request body: where the body of a plain http request ends.

Exactly that body is passed on, put into new frames, and not a byte after it: a second request inside the first would be one
that nobody has looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from invocations.sandbox.egress.streams import PIECE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from invocations.sandbox.egress.streams import EgressStream

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_SIZE_BYTES = 10
_END = b"\r\n"
_USUAL_CHUNK = 128


class SmallChunkAllowance:
    """How many chunks of next to nothing a call may still send. Each costs as much as one that is worth it."""

    def __init__(self, most: int) -> None:
        self._left = float(most)

    def count(self, size: int) -> None:
        self._left += size / _USUAL_CHUNK - 1
        if self._left < 0:
            raise EgressDenied(DenialReason.MALFORMED)


async def stream_body(stream: EgressStream, length: int | None, crumbs: SmallChunkAllowance) -> AsyncIterator[bytes]:
    """The body, framed for the next hop. ``length`` is None for a body in chunks."""
    if length is None:
        async for piece in _chunks(stream, crumbs):
            yield piece
        return
    while length:
        piece = await _some(stream, length)
        length -= len(piece)
        yield piece


async def _some(stream: EgressStream, most: int) -> bytes:
    piece = await stream.read(min(most, PIECE))
    if not piece:
        raise EgressDenied(DenialReason.MALFORMED)
    return piece


async def _chunks(stream: EgressStream, crumbs: SmallChunkAllowance) -> AsyncIterator[bytes]:
    """What has come travels on as one chunk, however many it came in."""
    gathered = bytearray()
    while left := await _size(stream):
        crumbs.count(left)
        while left:
            gathered += (piece := await _some(stream, left))
            left -= len(piece)
            if not stream.ahead or len(gathered) >= PIECE:
                yield _framed(gathered)
                gathered.clear()
        await _line_ends(stream)
        if gathered and not stream.ahead:
            yield _framed(gathered)
            gathered.clear()
    await _line_ends(stream)  # fields after the body are not passed on
    if gathered:
        yield _framed(gathered)
    yield b"0\r\n\r\n"


async def _size(stream: EgressStream) -> int:
    found = _SIZE.fullmatch(await stream.until(_END, _SIZE_BYTES, otherwise=DenialReason.MALFORMED))
    if found is None:  # extensions of chunks, and whatever else programs disagree about
        raise EgressDenied(DenialReason.MALFORMED)
    return int(found[1], 16)


async def _line_ends(stream: EgressStream) -> None:
    await stream.until(_END, len(_END), otherwise=DenialReason.MALFORMED)


def _framed(data: bytearray) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), bytes(data))
