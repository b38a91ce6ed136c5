"""Open streams: answers over MCP that are still being given, and end with what they were opened with.

One look at the database for all of a process, however many there are, and none while there are none. What a call was about goes on
and is recorded; it is not given to a program that was disconnected, whose agent was disabled, or whose person may not let it act any
more. Where only the token has ended, a stream does too; what was not begun is answered, and soon: were it refused, the program would
take its newer token and make the same call again. A kill switch ends no stream: calls that run finish, and who listens is told that
the list is empty.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from access.authentication.held_credentials import HeldCredential, find_ended_credentials
from kernel.database.connections import database_time, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from datetime import datetime

    from kernel.http.body_limits import Send
    from kernel.http.deferred_responses import InThread

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
    held: HeldCredential
    ends: datetime | None  # of the token


class OpenStreams:
    """Those of one process."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._open: set[_Answer] = set()
        self._watch: asyncio.Task[None] | None = None

    async def give(
        self, held: HeldCredential, answer: Coroutine[Any, Any, None], send: TrackedSend, *, ends: datetime | None
    ) -> None:
        """Until it was given, or what it was opened with counts no more."""
        task = asyncio.ensure_future(answer)
        given = _Answer(task, send, held, ends)
        self._open.add(given)
        if self._watch is None or self._watch.done() or self._watch.get_loop() is not asyncio.get_running_loop():
            self._watch = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # does nothing where it is done
            self._open.discard(given)
        if task.cancelled():
            await send.end()
        else:
            task.result()

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_EVERY_S)
            asked = {each.held for each in self._open}
            try:
                ended, now = await self._in_thread(partial(_find_ended, asked))
            except Exception as error:  # noqa: BLE001  whatever it was, the next look may find more
                log.warning("What open streams were opened with could not be asked about: %r", error)
                continue
            for each in list(self._open):
                if each.held in ended or (each.send.begun and each.ends is not None and each.ends <= now):
                    each.task.cancel()


def _find_ended(held: Iterable[HeldCredential]) -> tuple[set[HeldCredential], datetime]:
    """With the time by the clock by which tokens end."""
    try:
        return find_ended_credentials(held), database_time()
    finally:
        release_connection()
