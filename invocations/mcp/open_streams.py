"""Open streams: answers over MCP that are still being given to programs of connections, and end with the connection.

One question to the database a second for all of a process, however many there are, and none while there are none. Whatever the answer
was about goes on and is recorded; it is not given to a program that was disconnected, whose agent was disabled, or whose person may
not let it act any more. Where only the token has ended, a stream does too; what was not begun is answered, and soon: were it refused,
the program would take its newer token and make the same call again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from access.connections.rights import find_ended_connections
from kernel.database.connections import database_time, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from kernel.http.body_limits import Send
    from kernel.http.deferred_responses import InThread
    from kernel.principal import UsedConnection

log = logging.getLogger("toolhub.mcp")
LOOK_EVERY_S = 0.8


class TrackedSend:
    """Knows how far an answer is. ``refuse``: what is said in its place where nothing was said yet."""

    def __init__(self, send: Send, refuse: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
        self._send, self._refuse = send, refuse
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
            await self._refuse(self)
        await self({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    task: asyncio.Task[None]
    send: TrackedSend
    connection: UsedConnection


class OpenStreams:
    """Those of one process."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._open: set[_Answer] = set()
        self._watch: asyncio.Task[None] | None = None

    async def give(self, connection: UsedConnection, answer: Coroutine[Any, Any, None], send: TrackedSend) -> None:
        """Until it was given, or the connection has ended."""
        task = asyncio.ensure_future(answer)
        held = _Answer(task, send, connection)
        self._open.add(held)
        if self._watch is None or self._watch.done() or self._watch.get_loop() is not asyncio.get_running_loop():
            self._watch = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # does nothing where it is done
            self._open.discard(held)
        if task.cancelled():
            await send.end()
        else:
            task.result()

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_EVERY_S)
            asked = {each.connection.id for each in self._open}
            try:
                ended, now = await self._in_thread(partial(_find_ended, asked))
            except Exception as error:  # noqa: BLE001  whatever it was, the next look may find more
                log.warning("Whether connections of open streams have ended could not be asked: %r", error)
                continue
            for each in list(self._open):
                ends = each.connection.token_ends
                if each.connection.id in ended or (each.send.begun and ends is not None and ends <= now):
                    each.task.cancel()


def _find_ended(ids: Iterable[UUID]) -> tuple[set[UUID], datetime]:
    """With the time by the clock by which tokens end."""
    try:
        return set(find_ended_connections(ids)), database_time()
    finally:
        release_connection()
