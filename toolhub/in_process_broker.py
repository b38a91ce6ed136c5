"""The broker of the embedded shape: messages between threads of one process, heard when they are sent.

kombu's own looks into its queues a hundred times a second, which is a sixth of what an idle hub computes.
"""

from __future__ import annotations

import threading
import time
from queue import Empty
from typing import Any

from kombu.transport import memory

LOOK_AGAIN_S = 0.5  # for what is no message: a consumer that takes messages again


class Bell:
    """A number that grows with each message, for who waits for the next."""

    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._times = 0

    def heard(self) -> int:
        return self._times

    def ring(self) -> None:
        with self._rung:
            self._times += 1
            self._rung.notify_all()

    def wait(self, heard: int, at_most_s: float) -> None:
        with self._rung:
            self._rung.wait_for(lambda: self._times != heard, timeout=at_most_s)


bell = Bell()


class Channel(memory.Channel):
    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        bell.ring()

    def _put_fanout(self, exchange: str, message: Any, routing_key: Any = None, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        bell.ring()


class Transport(memory.Transport):
    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver the next message; ``TimeoutError`` when none came within ``timeout`` seconds."""
        assert self.cycle is not None
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            heard = bell.heard()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = LOOK_AGAIN_S if until is None else until - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                bell.wait(heard, min(left, LOOK_AGAIN_S))
            else:
                return
