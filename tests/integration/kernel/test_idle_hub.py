"""An idle hub: does an idle hub of one process rest, and hear at once when somebody writes?"""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection, Queue

from kernel import loops
from kernel.database import change_watch as news_module
from kernel.database.change_watch import ChangeNews, ChangeWatcher
from kernel.loops import repeat_work
from toolhub import embedded_mode
from toolhub.brokers import in_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger("tests.news")
HEARD_S = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hub.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE row (id INTEGER)")
    return path


class Hub:
    """A loop of a hub whose watch looks when the test says so. ``under_way`` is what the hub has to do."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.news, self.under_way, self.asked = ChangeNews(), False, 0
        monkeypatch.setattr(loops, "news", self.news)
        monkeypatch.setattr(loops, "release_connection", lambda: None)
        self.watch = ChangeWatcher(self.news, file, self._is_under_way)
        self.news.file = file.stat().st_ino
        self.news._watched = True
        self.connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, check_same_thread=False)
        self.stop, self.passes, self._passed = threading.Event(), 0, threading.Semaphore(0)

    def _is_under_way(self) -> bool:
        self.asked += 1
        return self.under_way

    def work(self) -> None:
        self.passes += 1
        self._passed.release()

    def look(self) -> None:
        self.watch.look(self.connection)

    def wait_for_pass(self) -> None:
        assert self._passed.acquire(timeout=HEARD_S)

    def wait_for_rest(self) -> None:
        for _ in range(HEARD_S * 1000):
            if self.news.resting:
                return
            threading.Event().wait(0.001)
        raise AssertionError("The loop does not rest.")

    @contextmanager
    def running(self) -> Iterator[None]:
        loop = threading.Thread(
            target=repeat_work, args=(self.work, self.stop), kwargs={"every_s": 0, "what": "Nothing", "log": log}
        )
        self.look()  # what was before the loop began is no news
        loop.start()
        try:
            yield
        finally:
            self.stop.set()
            self.news.wake()
            loop.join(HEARD_S)
            self.connection.close()


@pytest.fixture
def hub(file: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    return Hub(file, monkeypatch)


def write(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO row VALUES (1)")
        connection.commit()


def test_a_loop_makes_no_pass_while_nobody_writes_and_one_when_somebody_did(hub: Hub, file: Path) -> None:
    with hub.running():
        hub.wait_for_pass()
        hub.wait_for_rest()
        for _ in range(1000):
            hub.look()
        assert (hub.passes, hub.asked) == (1, 1), "a thousand looks are no pass and no query"

        write(file)
        hub.look()
        hub.wait_for_pass()

        hub.wait_for_rest()
        assert (hub.passes, hub.asked) == (2, 2)


def test_a_loop_goes_on_as_ever_while_something_is_under_way(hub: Hub, file: Path) -> None:
    hub.under_way = True
    with hub.running():
        for _ in range(5):
            hub.wait_for_pass()

        hub.under_way = False
        hub.look()
        hub.wait_for_rest()


def test_what_was_written_during_a_pass_is_news_after_it(hub: Hub, file: Path) -> None:
    with hub.running():
        hub.wait_for_pass()
        hub.wait_for_rest()
        seen = hub.news.seen()
        write(file)
        hub.look()

        hub.news.wait(seen, threading.Event())  # returns at once

        hub.wait_for_pass()


def test_a_database_that_was_put_back_is_opened_anew(hub: Hub, file: Path) -> None:
    with hub.running():
        hub.wait_for_pass()
        copy = file.with_suffix(".copy")
        copy.write_bytes(file.read_bytes())
        copy.rename(file)

        with pytest.raises(news_module.DatabaseReplaced):
            hub.look()


def test_where_nobody_watches_a_loop_rests_as_it_always_did() -> None:
    unwatched = ChangeNews()

    unwatched.wait(unwatched.seen(), threading.Event())

    assert not unwatched.keeps_connections


@pytest.mark.django_db
def test_a_hub_without_calls_and_messages_has_nothing_under_way() -> None:
    assert embedded_mode.is_under_way() is False


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the queues were looked into."""
    found: list[int] = []
    get = in_process.InProcessChannel._get

    def counted(self: Any, queue: str, timeout: float | None = None) -> Any:
        found.append(1)
        return get(self, queue, timeout)

    monkeypatch.setattr(in_process.InProcessChannel, "_get", counted)
    return found


def test_an_idle_worker_looks_into_its_queue_when_a_message_comes_and_not_a_hundred_times_a_second(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    wait = in_process.message_counter.wait
    heard: list[Any] = []

    def wait_and_note(times: int, at_most_s: float) -> None:
        waited.append(at_most_s)
        wait(times, at_most_s)

    def take(body: Any, message: Any) -> None:
        heard.append(body)
        message.ack()

    monkeypatch.setattr(in_process.message_counter, "wait", wait_and_note)
    with Connection(transport="toolhub.brokers.in_process:Transport") as connection:
        queue = Queue("tests.idle")
        consumer = connection.Consumer([queue], callbacks=[take])
        with consumer:
            worker = threading.Thread(target=connection.drain_events, kwargs={"timeout": HEARD_S})
            worker.start()
            while not waited:
                threading.Event().wait(0.001)
            with Connection(transport="toolhub.brokers.in_process:Transport") as sender:
                sender.Producer().publish({"a": 1}, routing_key="tests.idle", declare=[queue])
            worker.join(HEARD_S)

    assert heard == [{"a": 1}]
    assert len(looks) <= 2 * (len(waited) + 1), "once before each wait and once after it"
    assert set(waited) == {in_process.LOOK_AGAIN_S}
