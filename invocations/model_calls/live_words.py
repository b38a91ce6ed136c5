"""Live words: what a model has said so far in a call that no request waits for, for whoever looks on meanwhile.

They are passing news: kept in the process, in the production shape in Redis, and gone with the end of the call, whose answer is the
only text that counts. What a stream of the same answer would not tell before it is whole, is not told here either
(:func:`invocations.model_calls.model_runs.prepare_run`). A failure of the store is logged and ends nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Protocol, cast

import redis
from asgiref.sync import sync_to_async
from django.conf import settings

from invocations.answer.wake_ups import get_waker
from kernel.singleton import Once

if TYPE_CHECKING:
    from uuid import UUID

log = logging.getLogger("toolhub.models")
EVERY_S = 0.2
MAX_BYTES = 512 * 1024  # of one answer; what comes after them is told with the whole
KEY = "toolhub:words:{}"


class WordStore(Protocol):
    """Texts in UTF-8, by the call that they come from."""

    def add(self, call_id: UUID, words: bytes, *, keep_s: float) -> None:
        """Append; kept no longer than so many seconds from now."""

    def read(self, call_id: UUID, *, after: int = 0) -> bytes:
        """What was appended behind the first ``after`` bytes."""

    def drop(self, call_id: UUID) -> None: ...


class InProcessWords:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: dict[UUID, bytearray] = {}

    def add(self, call_id: UUID, words: bytes, *, keep_s: float) -> None:
        """Until it is dropped: a process that ends before takes it along."""
        with self._lock:
            self._words.setdefault(call_id, bytearray()).extend(words)

    def read(self, call_id: UUID, *, after: int = 0) -> bytes:
        with self._lock:
            return bytes(self._words.get(call_id, b"")[after:])

    def drop(self, call_id: UUID) -> None:
        with self._lock:
            self._words.pop(call_id, None)


class RedisWords:
    """Also what a process that died has left is gone once its time is over."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)

    def add(self, call_id: UUID, words: bytes, *, keep_s: float) -> None:
        with self._client.pipeline() as both:
            both.append(KEY.format(call_id), words)
            both.expire(KEY.format(call_id), int(keep_s) + 1)
            both.execute()

    def read(self, call_id: UUID, *, after: int = 0) -> bytes:
        try:
            return cast("bytes", self._client.getrange(KEY.format(call_id), after, -1))
        except redis.RedisError as error:
            log.warning("What a model says now cannot be read: %s", error)
            return b""

    def drop(self, call_id: UUID) -> None:
        self._client.delete(KEY.format(call_id))


@Once
def get_word_store() -> WordStore:
    return RedisWords(settings.TOOLHUB_REDIS_URL) if settings.TOOLHUB_REDIS_URL else InProcessWords()


class LiveWords:
    """Of one call. ``followed_id``: whose followers are woken. Used on one event loop; the store is written in a thread."""

    def __init__(self, call_id: UUID, *, followed_id: UUID) -> None:
        self._call_id, self._followed_id = call_id, followed_id
        self._pending: list[str] = []
        self._size = 0
        self._telling: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._has_failed = False

    def add(self, text: str, *, keep_s: float) -> None:
        """Tell it soon: the first words at once, what comes then a few times a second."""
        if not text or self._size >= MAX_BYTES or self._has_failed:
            return
        self._pending.append(text)
        self._size += len(text.encode())
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell(keep_s))

    async def _tell(self, keep_s: float) -> None:
        while self._pending and not self._stopped.is_set() and not self._has_failed:
            words, self._pending = "".join(self._pending).encode(), []
            await sync_to_async(self._write, thread_sensitive=False)(words, keep_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), EVERY_S)
        self._telling = None

    def _write(self, words: bytes, keep_s: float) -> None:
        try:
            get_word_store().add(self._call_id, words, keep_s=keep_s)
        except redis.RedisError as error:
            self._has_failed = True  # words behind a hole would be told as if nothing were missing
            log.warning("What a model says now is not told before its end: %s", error)
        else:
            get_waker().wake(self._followed_id)

    async def stop(self) -> None:
        """Nothing more is written when this returns. What was not told yet stands in the answer."""
        self._stopped.set()
        if self._telling is not None:
            await self._telling

    def drop(self) -> None:
        """The answer is there, or there will be none."""
        try:
            get_word_store().drop(self._call_id)
        except redis.RedisError as error:
            log.warning("What a model has said is dropped later, when its time is over: %s", error)
