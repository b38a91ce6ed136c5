"""Notifications: does PostgreSQL wake workers where the broker does not, each at once, and after a connection was cut?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import connection

from invocations.queue import claims, outbox
from invocations.queue.notify import CALLS, CHANNEL, REPLAYS, listener
from invocations.queue.notify.notifier import Notifier
from kernel.database.connections import open_direct_connection
from kernel.ids import new_id
from kernel.outages import Outage
from tests.support.background_runs import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)
LONG_S = 20.0


@pytest.fixture
def ear() -> Iterator[Any]:
    with open_direct_connection() as found:
        found.execute(f"LISTEN {CHANNEL}")
        yield found


@pytest.fixture(autouse=True)
def notifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notifier]:
    """That of this process."""
    found = Notifier()
    monkeypatch.setattr(outbox, "get_notifier", lambda: found)
    yield found
    if found._connection is not None:
        found._connection.close()


def hear(ear: Any, count: int) -> list[str]:
    return [each.payload for each in ear.notifies(timeout=LONG_S, stop_after=count)]


def cut_connections(who: str) -> None:
    """Those of this test that have said so last."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE %s",
            [who],
        )


@pytest.mark.req("OPS-6")
def test_a_notification_is_heard_with_what_waits(ear: Any, notifier: Notifier) -> None:
    assert notifier.notify(CALLS)
    assert notifier.notify(REPLAYS)

    assert hear(ear, 2) == [CALLS, REPLAYS]


@pytest.mark.req("OPS-6")
def test_notifications_that_come_together_are_one(notifier: Notifier, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, sent = threading.Event(), threading.Event(), list[list[str]]()

    def send(whats: list[str]) -> None:
        sent.append(whats)
        begun.set()
        assert may_end.wait(LONG_S)

    monkeypatch.setattr(notifier, "_send", send)
    threads = [threading.Thread(target=notifier.notify, args=(CALLS,))]
    threads[0].start()
    assert begun.wait(LONG_S)
    threads += [threading.Thread(target=notifier.notify, args=(what,)) for what in [CALLS] * 10 + [REPLAYS]]
    for each in threads[1:]:
        each.start()
    wait_for(lambda: notifier._next.whats == {CALLS, REPLAYS} and threading.active_count() > len(threads))
    may_end.set()
    for each in threads:
        each.join(LONG_S)

    assert sent == [[CALLS], [CALLS, REPLAYS]]


@pytest.mark.req("OPS-6")
def test_a_notifier_whose_connection_was_cut_notifies_all_the_same(ear: Any, notifier: Notifier) -> None:
    assert notifier.notify(CALLS)
    cut_connections("SELECT pg_notify%")

    assert notifier.notify(CALLS)
    assert hear(ear, 2) == [CALLS, CALLS]


@pytest.mark.req("OPS-6")
def test_where_postgresql_does_not_answer_the_notifier_says_so(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise psycopg.OperationalError("the server is away")

    monkeypatch.setattr("invocations.queue.notify.notifier.open_direct_connection", refuse)

    assert not notifier.notify(CALLS)


class Waiting:
    """Calls that wait, and what is done with them."""

    def __init__(self, count: int) -> None:
        self.left, self.taken, self.done = count, 0, 0
        self.lock = threading.Lock()
        self.together = threading.Barrier(count + 1)
        self.most = 0

    @contextmanager
    def claim(self) -> Iterator[object]:
        with self.lock:
            found = new_id() if self.left else None
            self.left -= bool(found)
            self.taken += bool(found)
            self.most = max(self.most, self.taken)
        try:
            yield found
        finally:
            with self.lock:
                self.taken -= bool(found)

    def run(self, invocation: object) -> None:
        self.together.wait(LONG_S)
        with self.lock:
            self.done += 1


@contextmanager
def listening(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Thread]:
    """A worker's listener, for whom so many calls wait from now on."""
    stop, count = threading.Event(), waiting.left
    waiting.left = 0
    monkeypatch.setattr(listener, "claim_next_call", waiting.claim)
    monkeypatch.setattr(listener, "has_queued_calls", lambda: waiting.left > 0)
    monkeypatch.setattr(listener, "run_claimed_call", waiting.run)
    monkeypatch.setattr(claims.places, "taken", lambda: waiting.taken)
    thread = threading.Thread(target=listener.listen_for_notifications, args=(stop,))
    thread.start()
    wait_for(is_listened)
    waiting.left = count
    try:
        yield thread
    finally:
        stop.set()
        waiting.together.abort()
        thread.join(LONG_S)
        assert not thread.is_alive()


def is_listened() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.req("OPS-6")
def test_one_notification_is_enough_for_all_calls_that_wait(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLHUB_WORKER_CONCURRENCY = 8
    waiting = Waiting(5)
    with listening(waiting, monkeypatch):
        assert notifier.notify(CALLS)

        waiting.together.wait(LONG_S)  # all five run at once
        wait_for(lambda: waiting.done == 5)


@pytest.mark.req("OPS-6")
def test_no_more_calls_run_than_the_worker_has_places_for(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLHUB_WORKER_CONCURRENCY, settings.TOOLHUB_WORKER_SPARE = 1, 1
    waiting = Waiting(6)
    waiting.together = threading.Barrier(2)  # they end two by two
    with listening(waiting, monkeypatch):
        assert notifier.notify(CALLS)

        wait_for(lambda: waiting.done == 6)
        assert waiting.most == 2


@pytest.mark.req("OPS-6", "TOOLS-18")
@pytest.mark.parametrize("how", ["its loops end", "its places are closed"])
def test_a_worker_that_was_told_to_end_claims_nothing_more(
    how: str, notifier: Notifier, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """The others go on with what waits: else it would work until nothing waits any more, or be killed at it."""
    settings.TOOLHUB_WORKER_CONCURRENCY, settings.TOOLHUB_WORKER_SPARE = 1, 0
    waiting = Waiting(5)
    waiting.together = threading.Barrier(2)
    stop, replayed = threading.Event(), list[None]()
    with ThreadPoolExecutor(1) as pool:
        work = listener.NotifiedWork(stop, pool)
        monkeypatch.setattr(listener, "claim_next_call", waiting.claim)
        monkeypatch.setattr(listener, "run_claimed_call", waiting.run)
        monkeypatch.setattr(claims.places, "taken", lambda: waiting.taken)
        monkeypatch.setattr(listener, "run_next_batch", lambda: replayed.append(None))
        work.begin(CALLS)
        wait_for(lambda: waiting.taken == 1)
        work.begin(REPLAYS)  # which waits for the one thread
        if how == "its loops end":
            stop.set()
        else:
            monkeypatch.setattr(claims.places, "closed", True)
        waiting.together.wait(LONG_S)

    assert (waiting.done, waiting.left, replayed) == (1, 4, [])


@pytest.mark.req("OPS-6", "TOOLS-18")
def test_closed_places_claim_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims.places, "closed", True)
    monkeypatch.setattr(claims, "claim_calls", lambda *_given: pytest.fail("it asks for one"))

    with claims.claim_next_call() as invocation:
        assert invocation is None


@pytest.mark.req("OPS-6")
def test_a_listener_whose_connection_was_cut_listens_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(1)
    with listening(waiting, monkeypatch):
        cut_connections("LISTEN%")

        waiting.together.wait(LONG_S)  # it looks for what was notified meanwhile
        wait_for(lambda: waiting.done == 1)


@pytest.mark.req("OPS-6")
@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), TimeoutError("slow")])
def test_while_the_broker_is_away_postgresql_wakes_the_workers_and_the_broker_is_asked_again_later(
    ear: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def fail() -> None:
        asked.append(None)
        raise error

    monkeypatch.setattr(outbox, "outage", Outage(outbox.log, gone="gone", back="back"))
    for _ in range(3):
        assert outbox._send(fail) is False
        assert outbox.notify_by_postgresql(CALLS)
    assert hear(ear, 3) == [CALLS] * 3
    assert len(asked) == 1

    outbox.outage._until = 0.001  # the time to try again has come
    assert outbox._send(lambda: asked.append(None))
    assert outbox._send(lambda: asked.append(None))
    assert len(asked) == 3


@pytest.mark.req("OPS-6")
def test_without_redis_by_choice_no_broker_is_asked(settings: Any) -> None:
    settings.TOOLHUB_EMBEDDED, settings.TOOLHUB_REDIS_URL = False, ""

    assert not outbox._send(lambda: pytest.fail("there is none"))
