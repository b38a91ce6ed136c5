"""Wake-up consumer: who hears the wake-ups of Redis in a worker. The threads that work on what waits wait for them themselves.

A step of Celery's consumer, beside those that answer remote control and keep the connection. Celery reads a message in one thread,
makes a request of it and hands that on to another; here nothing is handed on: a wake-up only names a task (docs/adr/0004, 0075).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import redis
from celery import bootsteps
from redis.backoff import NoBackoff
from redis.retry import Retry

from kernel.database.connections import release_connection
from kernel.outages import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery import Celery

log = logging.getLogger("toolhub.queue")
lines = logging.getLogger("celery.wake_ups")  # as many as `--loglevel` asks for
IN_PROCESS = "memory://"
WAIT_S = 1  # how long a worker that is to end may still wait
ANSWERED_WITHIN_S = 5
AGAIN_S = 1.0
outage = Outage(
    log, gone="No wake-ups of Redis are heard; PostgreSQL wakes this worker", back="Wake-ups of Redis are heard again"
)


class WakeUpThreads:
    """``is_closed``: whether this worker was asked to end; then nothing more is begun."""

    def __init__(self, app: Celery, queues: Sequence[str], is_closed: Callable[[], bool]) -> None:
        self._app, self._queues, self._is_closed = app, list(queues), is_closed
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        """Once; they find Redis again by themselves."""
        if self._threads:
            return
        lines.info("%s threads wait for wake-ups at %s", count, ", ".join(self._queues))
        for number in range(count):
            thread = threading.Thread(target=self._listen, name=f"wake-ups-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self) -> None:
        """Until what was begun is done."""
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        with self._connect() as client:
            while not self._is_closed():
                try:
                    heard = client.brpop(self._queues, timeout=WAIT_S)
                    if heard is not None and self._is_closed():
                        client.rpush(*heard)  # for another worker
                        return
                except redis.RedisError as error:
                    outage.begin(error)
                    time.sleep(AGAIN_S)
                    continue
                outage.end()
                if heard is not None:
                    self._work(heard[1])

    def _connect(self) -> redis.Redis:
        return redis.Redis.from_url(
            self._app.conf.broker_url,
            socket_connect_timeout=ANSWERED_WITHIN_S,
            socket_timeout=WAIT_S + ANSWERED_WITHIN_S,
            retry=Retry(NoBackoff(), 0),  # a second BRPOP would not know whether the first has taken a message
        )

    def _work(self, message: bytes) -> None:
        """What such a task works on stands in the database: it is told nothing."""
        try:
            said = json.loads(message)["headers"]
            self._app.tasks[said["task"]]()
            lines.info("Task %s[%s] succeeded", said["task"], said["id"])
        except Exception:
            log.exception("What a wake-up was for was not done; another one comes")
        finally:
            release_connection()


class WakeUpConsumer(bootsteps.StartStopStep):
    """In place of Celery's own consumer of the queues of this worker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    threads: WakeUpThreads | None = None  # of this process

    def include_if(self, parent: Any) -> bool:
        return not parent.app.conf.broker_url.startswith(IN_PROCESS)

    def create(self, parent: Any) -> None:
        """Before anything is consumed."""
        queues = parent.app.amqp.queues
        names = list(queues.consume_from)
        queues.deselect(names)
        WakeUpConsumer.threads = WakeUpThreads(parent.app, names, takes_nothing_more)

    def start(self, parent: Any) -> None:
        """At the beginning, and each time that Celery has lost its own connection."""
        assert self.threads is not None
        self.threads.start(parent.pool.limit)

    @classmethod
    def join(cls) -> None:
        if cls.threads is not None:
            cls.threads.join()


def takes_nothing_more() -> bool:
    from invocations.queue.claims import places  # noqa: PLC0415  models load only after Django is set up

    return bool(places.closed)
