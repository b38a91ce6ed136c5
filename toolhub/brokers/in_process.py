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


class MessageCounter:
    """A number that grows with each message, for who waits for the next."""

    def __init__(self) -> None:
        self._counted = threading.Condition()
        self._times = 0

    def heard(self) -> int:
        return self._times

    def count_message(self) -> None:
        with self._counted:
            self._times += 1
            self._counted.notify_all()

    def wait(self, heard: int, at_most_s: float) -> None:
        with self._counted:
            self._counted.wait_for(lambda: self._times != heard, timeout=at_most_s)


message_counter = MessageCounter()


class InProcessChannel(memory.Channel):
    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:
        """Whoever has answered for a message may take another, which may wait already."""
        super().basic_ack(delivery_tag, multiple=multiple)
        message_counter.count_message()

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        message_counter.count_message()

    def _put_fanout(self, exchange: str, message: Any, routing_key: Any = None, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        message_counter.count_message()


class Transport(memory.Transport):
    Channel = InProcessChannel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver the next message; ``TimeoutError`` when none came within ``timeout`` seconds."""
        assert self.cycle is not None
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            heard = message_counter.heard()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = LOOK_AGAIN_S if until is None else until - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                message_counter.wait(heard, min(left, LOOK_AGAIN_S))
            else:
                return
