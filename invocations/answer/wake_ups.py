"""Wake-ups of answers: how whoever waits for a call learns that something has become of it.

A wake-up is a hint: who waits looks at the row when it comes, and now and then without one. Each process has one ear for all who
wait in it: in the embedded default the wake-up is said in the process, in the production shape one Redis subscription hears it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import redis
from django.conf import settings

from kernel.outages import Outage
from kernel.singleton import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

log = logging.getLogger("toolhub.waker")
CHANNEL = "toolhub:wake"
LOOK_ANYWAY_S = 1.0  # the longest that a lost wake-up can cost
LOOK_DEAF_S = 0.25  # the same while nothing is heard
HEARS_WITHIN_S = 2.0
PATIENCE_S = 1.0
outage = Outage(log, gone="Redis takes no wake-ups; callers look by themselves", back="Redis takes wake-ups again")


class Waiter:
    """One who waits for one call, in a thread or on an event loop."""

    def __init__(self, is_deaf: Callable[[], bool]) -> None:
        self._is_deaf = is_deaf
        self._woken = threading.Event()
        self.was_poked = False  # ever; waiting also ends without that
        self.look_anyway_s = LOOK_ANYWAY_S
        self._tell_loop: Callable[[], object] = lambda: None

    def poke(self) -> None:
        self.was_poked = True
        self._woken.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended, and who waited on it with it
            self._tell_loop()

    def _at_most(self, seconds: float) -> float:
        return min(seconds, LOOK_DEAF_S if self._is_deaf() else self.look_anyway_s)

    def wait(self, seconds: float) -> None:
        """Returns at a wake-up, when the time is over, or when it is time to look anyway."""
        self._woken.wait(self._at_most(seconds))
        self._woken.clear()

    async def wait_async(self, seconds: float) -> None:
        """The same without a thread."""
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        self._tell_loop = lambda: loop.call_soon_threadsafe(heard.set)
        if not self._woken.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(heard.wait(), self._at_most(seconds))
        self._woken.clear()


class Waker(Protocol):
    def listen(self, invocation_id: UUID) -> AbstractContextManager[Waiter]:
        """Inside the block the waiter hears what is said of the call. Listen before you send."""

    def wake(self, invocation_id: UUID) -> None:
        """Wake whoever listens; nothing happens when nobody does, and a failure is only logged."""


class InProcessWaker:
    """Also the one who hands out, in each process, what is heard from elsewhere."""

    deaf = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[UUID, list[Waiter]] = {}

    @contextmanager
    def listen(self, invocation_id: UUID) -> Iterator[Waiter]:
        waiter = Waiter(lambda: self.deaf)
        with self._lock:
            self._waiters.setdefault(invocation_id, []).append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters[invocation_id].remove(waiter)
                if not self._waiters[invocation_id]:
                    del self._waiters[invocation_id]

    def wake(self, invocation_id: UUID) -> None:
        with self._lock:
            waiters = list(self._waiters.get(invocation_id, ()))
        for waiter in waiters:
            waiter.poke()

    def wake_all(self) -> None:
        with self._lock:
            waiters = [each for some in self._waiters.values() for each in some]
        for waiter in waiters:
            waiter.poke()


class RedisWaker(InProcessWaker):
    """The id of a call, said in Redis, wakes who waits for it in any process."""

    deaf = True

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)
        self._starting = threading.Lock()
        self._ear: threading.Thread | None = None
        self._hears = threading.Event()

    @contextmanager
    def listen(self, invocation_id: UUID) -> Iterator[Waiter]:
        with self._starting:
            if self._ear is None:
                self._ear = threading.Thread(target=self._hear, name="wake-ups", daemon=True)
                self._ear.start()
                self._hears.wait(HEARS_WITHIN_S)
        with super().listen(invocation_id) as waiter:
            yield waiter

    def wake(self, invocation_id: UUID) -> None:
        if outage.is_on():
            return
        try:
            self._client.publish(CHANNEL, invocation_id.bytes)
        except redis.RedisError as error:
            outage.begin(error)
        else:
            outage.end()

    def _hear(self) -> None:
        while True:
            try:
                with self._client.pubsub(ignore_subscribe_messages=False) as pubsub:  # type: ignore[no-untyped-call]
                    pubsub.subscribe(CHANNEL)
                    self._listen(pubsub)
            except redis.RedisError as error:
                self.deaf = True
                self.wake_all()  # they look more often from now on
                log.warning("Redis does not answer, waiting by looking at the rows: %s", error)
                threading.Event().wait(PATIENCE_S)

    def _listen(self, pubsub: redis.client.PubSub) -> None:
        while True:
            message = pubsub.get_message(timeout=PATIENCE_S)
            if message is None:
                continue
            if message["type"] == "subscribe":
                self.deaf = False
                self._hears.set()
                self.wake_all()  # what was said meanwhile was not heard
            elif len(message["data"]) == 16:
                super().wake(UUID(bytes=message["data"]))


class DeafWaker(InProcessWaker):
    """Of processes that have no Redis between them: who waits looks at the row, four times a second."""

    deaf = True


@Once
def get_waker() -> Waker:
    if settings.TOOLHUB_REDIS_URL:
        return RedisWaker(settings.TOOLHUB_REDIS_URL)
    return InProcessWaker() if settings.TOOLHUB_EMBEDDED else DeafWaker()
