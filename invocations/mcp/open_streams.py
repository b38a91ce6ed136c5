"""Open streams: answers over MCP that are still being given to programs of connections, and end with the connection.

One question to the database a second for all of a process, however many there are, and none while there are none. Whatever the answer
was about goes on and is recorded; it is not given to a program that was disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError

from access.connections.rights import find_ended_connections
from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from uuid import UUID

    from kernel.http.body_limits import Send
    from kernel.http.deferred_responses import InThread

LOOK_EVERY_S = 0.8


class TrackedSend:
    """Knows how far an answer is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = self.over = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        if self.over:
            return
        self.begun = True
        self.over = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """Nothing more: a stream that has begun ends, and where nothing was said yet the program is told that it may not."""
        if not self.begun:
            await self({"type": "http.response.start", "status": 401, "headers": []})
        await self({"type": "http.response.body", "body": b"", "more_body": False})


class OpenStreams:
    """Those of one process."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._open: defaultdict[UUID, set[asyncio.Task[None]]] = defaultdict(set)
        self._watch: asyncio.Task[None] | None = None

    async def give(self, connection_id: UUID, answer: Coroutine[Any, Any, None], send: TrackedSend) -> None:
        """Until it was given, or the connection has ended."""
        task = asyncio.ensure_future(answer)
        self._open[connection_id].add(task)
        if self._watch is None or self._watch.done() or self._watch.get_loop() is not asyncio.get_running_loop():
            self._watch = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # does nothing where it is done
            self._open[connection_id].discard(task)
            if not self._open[connection_id]:
                del self._open[connection_id]
        if task.cancelled():
            await send.end()
        else:
            task.result()

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_EVERY_S)
            asked = list(self._open)
            with contextlib.suppress(DatabaseError):
                for ended in await self._in_thread(partial(_find_ended, asked)):
                    for task in self._open.get(ended, ()):
                        task.cancel()


def _find_ended(ids: list[UUID]) -> list[UUID]:
    try:
        return find_ended_connections(ids)
    finally:
        release_connection()
