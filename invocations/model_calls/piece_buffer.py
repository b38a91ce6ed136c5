"""Piece buffer: the pieces of an answer between the provider that sends them and the caller that reads them.

Whoever reads slowly holds the provider up: no more than a few pieces are kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from llm.answers import ChatDelta

MOST = 256  # pieces


class PieceBuffer:
    """Of one answer, on one event loop."""

    def __init__(self) -> None:
        self._pieces: deque[ChatDelta] = deque()
        self._news, self._room, self._content = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._room.set()
        self._closed = self.has_content = False

    async def put(self, piece: ChatDelta) -> None:
        await self._room.wait()
        self._pieces.append(piece)
        self._news.set()
        if piece.has_content:
            self.has_content = True
            self._content.set()
        if len(self._pieces) >= MOST:
            self._room.clear()

    def close(self) -> None:
        """Nothing more comes."""
        self._closed = True
        self._news.set()
        self._content.set()

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def wait_for_content(self) -> None:
        """Until a piece has said something, or nothing more comes."""
        await self._content.wait()

    async def read(self) -> AsyncIterator[list[ChatDelta]]:
        """All that is there, each time that there is something, until the end."""
        while True:
            if self._pieces:
                found = list(self._pieces)
                self._pieces.clear()
                self._room.set()
                yield found
            elif self._closed:
                return
            else:
                self._news.clear()
                await self._news.wait()
