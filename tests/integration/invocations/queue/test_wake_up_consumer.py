"""Wake-up consumer: do the threads that work hear each wake-up of Redis once, and does a worker that ends leave the rest?"""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import redis
from celery import Celery
from kombu import Queue

from invocations.queue import outbox
from toolhub.brokers.wake_up_consumer import WakeUpConsumer, WakeUpThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TASK = "tests.rung"
PATIENCE_S = 60


class Worker:
    """Of a queue of its own; ``does``: what its task does."""

    def __init__(self, url: str) -> None:
        self.queue, self.closed = f"tests-{uuid4()}", threading.Event()
        self.app = Celery("rung", broker=url, set_as_current=False)
        self.app.conf.broker_transport = "toolhub.brokers.redis:Transport"
        self.does: Callable[[], object] = lambda: None

        def rung() -> None:
            self.does()

        self.app.task(name=TASK, shared=False)(rung)
        self.threads = WakeUpThreads(self.app, [self.queue], self.closed.is_set)
        self.store = redis.Redis.from_url(url)
        self.sender = outbox.WakeUpSender(self.app, TASK)  # one, as a process has it: each keeps a connection

    def ring(self) -> None:
        self.sender.send(self.queue)

    def end(self) -> None:
        self.closed.set()
        self.threads.join()
        self.store.delete(self.queue)
        self.store.close()
        self.sender._channel.connection.client.close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    url = os.environ.get("TOOLHUB_TEST_REDIS_URL", "")
    assert url, "TOOLHUB_TEST_REDIS_URL names no Redis. Type `make test`, or `scripts/testenv start`."
    found = Worker(url)
    yield found
    found.end()


def test_who_hears_a_wake_up_works_on_it_and_others_hear_the_next(worker: Worker) -> None:
    together, done = threading.Barrier(2), threading.Semaphore(0)

    def meet() -> None:
        together.wait(PATIENCE_S)
        done.release()

    worker.does = meet
    worker.threads.start(2)
    for _ in range(4):
        worker.ring()

    assert all(done.acquire(timeout=PATIENCE_S) for _ in range(4))
    assert worker.store.llen(worker.queue) == 0


@pytest.mark.unmapped
def test_neither_a_task_that_fails_nor_what_is_no_wake_up_ends_the_thread(worker: Worker) -> None:
    times, twice = [], threading.Event()

    def fail_once() -> None:
        times.append(1)
        if len(times) == 1:
            raise ZeroDivisionError
        twice.set()

    worker.does = fail_once
    worker.store.lpush(worker.queue, b"{", b'{"headers": {"task": "tests.none"}}')
    worker.ring()
    worker.ring()

    worker.threads.start(1)

    assert twice.wait(PATIENCE_S)


def test_a_worker_that_was_told_to_end_finishes_what_it_has_and_leaves_what_comes(worker: Worker) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        ended.set()

    worker.does = work
    worker.threads.start(1)
    worker.ring()
    assert begun.wait(PATIENCE_S)

    worker.closed.set()
    worker.ring()
    may_end.set()
    worker.threads.join()

    assert ended.is_set()
    assert worker.store.llen(worker.queue) == 1


def test_what_is_heard_too_late_is_left_to_another_worker(worker: Worker) -> None:
    closed = iter([False, True])
    threads = WakeUpThreads(worker.app, [worker.queue], lambda: next(closed))
    worker.does = lambda: pytest.fail("This worker was told to end.")
    worker.ring()

    threads.start(1)
    threads.join()

    assert worker.store.llen(worker.queue) == 1


def test_celery_consumes_none_of_the_queues_that_are_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WakeUpConsumer, "threads", None)
    app = Celery("queues", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.task_queues = [Queue("quick"), Queue("long")]
    parent: Any = SimpleNamespace(app=app)
    step = object.__new__(WakeUpConsumer)

    assert step.include_if(parent)
    step.create(parent)

    assert list(app.amqp.queues.consume_from) == []
    assert WakeUpConsumer.threads is not None
    assert WakeUpConsumer.threads._queues == ["quick", "long"]


def test_a_hub_whose_broker_is_the_memory_of_its_process_has_celerys_consumer() -> None:
    app = Celery("memory", broker="memory://memory", set_as_current=False)

    assert not object.__new__(WakeUpConsumer).include_if(SimpleNamespace(app=app))
