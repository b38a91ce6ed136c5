"""Open streams: answers over MCP that are still being given, and end with what they were opened with.

One look at the database for all of a process, however many there are, and none while there are none. What a call was about goes on
and is recorded; it is not given to a program that was disconnected, whose agent was disabled, or whose person may not let it act any
more. Where only the token has ended, a stream does too; what was not begun is answered, and soon: were it refused, the program would
take its newer token and make the same call again. A kill switch that is thrown ends the streams in its reach, and says so
(:mod:`invocations.stopped_streams`); calls that run finish.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from access.authentication.held_credentials import HeldCredential, find_ended_credentials
from invocations.stopped_streams import HaltWatch
from kernel.database.connections import database_time, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from datetime import datetime

    from access.problems import Halted
    from invocations.stopped_streams import StreamTopic
    from kernel.http.body_limits import Send
    from kernel.http.deferred_responses import InThread
    from kernel.problems import Problem

log = logging.getLogger("toolhub.mcp")
LOOK_EVERY_S = 0.8
# Of the first look: a switch that was thrown just before it may be younger than the stream, by the clocks of two hosts.
THROWN_BEFORE = timedelta(seconds=5)


def _write_nothing(problem: Problem) -> bytes:
    del problem
    return b""


class TrackedSend:
    """Knows how far an answer is. ``refuse``: what is said in its place where nothing was said yet; ``write_last``: what a stream says
    at last when it ends because of a problem.
    """

    def __init__(self, send: Send, refuse: Callable[[Send, Problem | None], Coroutine[Any, Any, None]]) -> None:
        self._send, self._refuse = send, refuse
        self.write_last: Callable[[Problem], bytes] = _write_nothing
        self.begun = self.over = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        if self.over:
            return
        self.begun = True
        self.over = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, problem: Problem | None = None) -> None:
        """Nothing more: a stream that has begun ends, and where nothing was said yet the program is told that it may not."""
        if not self.begun:
            await self._refuse(self, problem)
        last = b"" if problem is None or self.over else self.write_last(problem)
        await self({"type": "http.response.body", "body": last, "more_body": False})


@dataclass(slots=True, eq=False)
class _Answer:
    task: asyncio.Task[None]
    send: TrackedSend
    held: HeldCredential
    ends: datetime | None  # of the token
    topic: StreamTopic
    stopped: Halted | None = None


class OpenStreams:
    """Those of one process."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._open: set[_Answer] = set()
        self._watch: asyncio.Task[None] | None = None

    async def give(
        self,
        held: HeldCredential,
        answer: Coroutine[Any, Any, None],
        send: TrackedSend,
        *,
        ends: datetime | None,
        topic: StreamTopic,
    ) -> None:
        """Until it was given, what it was opened with counts no more, or a kill switch stops what it is about."""
        task = asyncio.ensure_future(answer)
        given = _Answer(task, send, held, ends, topic)
        self._open.add(given)
        if self._watch is None or self._watch.done() or self._watch.get_loop() is not asyncio.get_running_loop():
            self._watch = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # does nothing where it is done
            self._open.discard(given)
        if task.cancelled():
            await send.end(given.stopped)
        else:
            task.result()

    async def _look(self) -> None:
        halts = HaltWatch(THROWN_BEFORE)
        while self._open:
            await asyncio.sleep(LOOK_EVERY_S)
            held, topics = {each.held for each in self._open}, [each.topic for each in self._open]
            try:
                ended, stopped, now = await self._in_thread(partial(_find_ended, held, halts, topics))
            except Exception as error:  # noqa: BLE001  whatever it was, the next look may find more
                log.warning("What open streams were opened with could not be asked about: %r", error)
                continue
            for each in list(self._open):
                each.stopped = stopped.get(each.topic, each.stopped)
                token_ended = each.send.begun and each.ends is not None and each.ends <= now
                if each.held in ended or token_ended or each.stopped is not None:
                    each.topic.is_ended = True
                    each.task.cancel()


def _find_ended(
    held: Iterable[HeldCredential], halts: HaltWatch, topics: Iterable[StreamTopic]
) -> tuple[set[HeldCredential], dict[StreamTopic, Halted], datetime]:
    """What counts no more, what a kill switch stops, and the time by the clock by which tokens end."""
    try:
        return find_ended_credentials(held), halts.find_stopped(topics), database_time()
    finally:
        release_connection()
