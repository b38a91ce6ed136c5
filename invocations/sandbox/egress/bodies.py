"""Where does the body of a plain http request end?

Exactly that body is passed on, put into new frames, and not a byte after it: a second request inside the first would be one
that nobody has looked at.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from invocations.sandbox.egress.whys import Stopped, Why

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 1 << 16
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")


async def pieces_of(reader: asyncio.StreamReader, length: int | None) -> AsyncIterator[bytes]:
    """The body, framed for the next hop. ``length`` is None for a body in chunks."""
    if length is None:
        async for piece in _chunks(reader):
            yield piece
        return
    while length:
        piece = await reader.read(min(length, _PIECE))
        if not piece:
            raise Stopped(Why.MALFORMED)
        length -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    try:
        while True:
            line = await reader.readuntil(b"\r\n")
            found = _SIZE.fullmatch(line)
            if found is None:  # extensions of chunks, and whatever else programs disagree about
                raise Stopped(Why.MALFORMED)
            size = int(found[1], 16)
            if size == 0:
                if await reader.readexactly(2) != b"\r\n":  # fields after the body are not passed on
                    raise Stopped(Why.MALFORMED)
                yield b"0\r\n\r\n"
                return
            yield b"%x\r\n" % size
            async for piece in pieces_of(reader, size):
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise Stopped(Why.MALFORMED)
            yield b"\r\n"
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise Stopped(Why.MALFORMED) from error
