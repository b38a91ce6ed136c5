"""Local workers: is all that is enqueued done by threads of this process, and nothing begun after their end?"""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest

from invocations.queue.notify import CALLS, REPLAYS
from invocations.queue.notify.local_workers import LocalWorkers

if TYPE_CHECKING:
    from collections.abc import Callable

WITHIN_S = 60


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("invocations.queue.notify.local_workers.close_old_connections", lambda: None)


def note(done: SimpleQueue[str], what: str) -> Callable[[], None]:
    return lambda: done.put(what)


def test_threads_that_begin_look_for_what_nobody_heard_of() -> None:
    workers, done = LocalWorkers(), SimpleQueue[str]()
    workers.enqueue(CALLS)  # nobody hears it

    with workers.running({CALLS: note(done, CALLS), REPLAYS: note(done, REPLAYS)}, threads=1):
        assert [done.get(timeout=WITHIN_S) for _ in range(2)] == [CALLS, REPLAYS]


def test_each_message_is_worked_on_by_a_thread_of_its_own_while_others_work() -> None:
    workers, done = LocalWorkers(), SimpleQueue[str]()
    together = threading.Barrier(3)

    def work() -> None:
        together.wait(WITHIN_S)
        done.put(threading.current_thread().name)

    with workers.running({CALLS: work}, threads=3):
        workers.send("a queue", invocation_id="x")
        workers.enqueue(CALLS)

        assert len({done.get(timeout=WITHIN_S) for _ in range(3)}) == 3


def test_work_that_fails_is_logged_and_keeps_no_other_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    workers, done = LocalWorkers(), SimpleQueue[str]()

    def fail() -> None:
        raise ZeroDivisionError

    with (
        caplog.at_level(logging.ERROR, "toolhub.queue"),
        workers.running({CALLS: fail, REPLAYS: note(done, REPLAYS)}, threads=1),
    ):
        assert done.get(timeout=WITHIN_S) == REPLAYS

    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_what_has_begun_is_waited_for_and_nothing_is_begun_afterwards() -> None:
    workers, done = LocalWorkers(), SimpleQueue[str]()
    begun, let_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        let_end.wait(WITHIN_S)
        done.put("ended")

    def end_soon() -> None:
        begun.wait(WITHIN_S)
        let_end.set()

    helper = threading.Thread(target=end_soon)
    with workers.running({CALLS: work}, threads=1):
        begun.wait(WITHIN_S)
        helper.start()
    helper.join()

    assert done.get(timeout=WITHIN_S) == "ended"
    workers.enqueue(CALLS)
    assert done.empty()
