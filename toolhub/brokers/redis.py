"""Redis broker: what the hub wants of Redis as a broker.

A bell and nothing else (docs/adr/0004): who hears it looks into the database, and what nobody heard is rung again within
seconds. So workers keep no books in Redis about the messages that they have, and give none back when they end. With kombu's
books, a worker that lost Redis for a moment while a call ran ended with all its calls: what it acknowledges or gives back goes
through the connection that is gone (kombu 5.7.0: ``'NoneType' object has no attribute 'hostname'``).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kombu.transport import redis

if TYPE_CHECKING:
    from collections.abc import Iterator


class RedisChannel(redis.Channel):
    ack_emulation = False
    do_restore = False
    max_connections = 1000  # as many threads as a process has may ring at the same moment, over one channel

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """kombu makes a client for each command, which takes as long as the command."""
        yield client or self._kept

    @cached_property
    def _kept(self) -> Any:
        return self._create_client()  # type: ignore[attr-defined]  # the stubs are older


class Transport(redis.Transport):
    Channel = RedisChannel
