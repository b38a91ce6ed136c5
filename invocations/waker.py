"""How does a waiting caller learn that its call has ended?

A wake-up is a hint: who waits looks at the row when it comes, and now and then without one. In the embedded default it is
an event of this process, in the production shape a Redis message.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import redis
from django.conf import settings

from toolhub.kernel.ids import encode
from toolhub.kernel.once import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from uuid import UUID

log = logging.getLogger("toolhub.waker")
LOOK_ANYWAY_S = 1.0  # the longest that a lost wake-up can cost


class Waker(Protocol):
    def listen(self, invocation_id: UUID) -> AbstractContextManager[Callable[[float], None]]:
        """Inside the block, ``wait(seconds)`` returns at a wake-up, or when the time is over. Listen before you send."""

    def wake(self, invocation_id: UUID) -> None:
        """Wake whoever listens; nothing happens when nobody does, and a failure is only logged."""


class InProcessWaker:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[UUID, list[threading.Event]] = {}

    @contextmanager
    def listen(self, invocation_id: UUID) -> Iterator[Callable[[float], None]]:
        event = threading.Event()
        with self._lock:
            self._events.setdefault(invocation_id, []).append(event)

        def wait(seconds: float) -> None:
            if event.wait(min(seconds, LOOK_ANYWAY_S)):
                event.clear()

        try:
            yield wait
        finally:
            with self._lock:
                self._events[invocation_id].remove(event)
                if not self._events[invocation_id]:
                    del self._events[invocation_id]

    def wake(self, invocation_id: UUID) -> None:
        with self._lock:
            for event in self._events.get(invocation_id, []):
                event.set()


class RedisWaker:
    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)

    @staticmethod
    def _channel(invocation_id: UUID) -> str:
        return "toolhub:wake:" + encode("inv", invocation_id)

    @contextmanager
    def listen(self, invocation_id: UUID) -> Iterator[Callable[[float], None]]:
        pubsub = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        try:
            pubsub.subscribe(self._channel(invocation_id))
            pubsub.get_message(timeout=2)  # the confirmation; after it no wake-up is missed
            broken = False
        except redis.RedisError as error:
            log.warning("Redis does not answer, waiting by looking at the row: %s", error)
            broken = True

        def wait(seconds: float) -> None:
            nonlocal broken
            if not broken:
                try:
                    pubsub.get_message(timeout=min(seconds, LOOK_ANYWAY_S))
                    return
                except redis.RedisError as error:
                    log.warning("Redis went away, waiting by looking at the row: %s", error)
                    broken = True
            time.sleep(min(seconds, LOOK_ANYWAY_S / 4))

        try:
            yield wait
        finally:
            pubsub.close()

    def wake(self, invocation_id: UUID) -> None:
        try:
            self._client.publish(self._channel(invocation_id), b"1")
        except redis.RedisError as error:
            log.warning("A wake-up was not sent, the caller looks by itself: %s", error)


@Once
def waker() -> Waker:
    return RedisWaker(settings.TOOLHUB_REDIS_URL) if settings.TOOLHUB_REDIS_URL else InProcessWaker()
