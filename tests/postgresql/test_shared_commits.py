"""Shared commits: are transactions of several threads that are sent as one what they would be one by one?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction

from kernel.database.connections import open_direct_connection, share_commit
from kernel.database.postgresql.pipeline import StatementPipeline, is_hung_up
from kernel.database.postgresql.shared_commits import PATIENCE, PendingCommit, commit_turns
from kernel.database.prepared_statements import (
    execute_prepared,
    execute_prepared_last,
    execute_prepared_later,
    fetch_prepared,
    fetch_prepared_later,
)
from kernel.database.tenancy import acting_for, acting_for_nobody, hub_wide
from kernel.ids import new_id
from tests.support.concurrency import MEET_WITHIN_S, is_waited_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
INSERT = b"INSERT INTO shared (number, said) VALUES (%s, %s)"
SENT = b"SELECT number FROM shared ORDER BY number"
ROW = b"SELECT said FROM shared WHERE number = %s"
CHANGE = b"UPDATE shared SET said = %s WHERE number = %s"
ROW_AND_WHO = b"SELECT said, current_setting('app.tenant', true) FROM shared WHERE number = %s"
INSERT_WHO = b"INSERT INTO shared (number, said) VALUES (%s, current_setting('app.tenant', true))"
LOCK = b"INSERT INTO shared (number, said) SELECT *, 'lock' FROM unnest(%(numbers)s::bigint[])"
WHO = b"SELECT current_setting('app.tenant', true)"
NOTHING = PendingCommit("", [], [], [])
WRITER = b"SELECT xmin::text FROM shared WHERE number = ANY(%s) GROUP BY xmin::text"


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shared (number bigint PRIMARY KEY, said text)")
        cursor.execute("GRANT ALL ON shared TO PUBLIC")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE shared")


def sent() -> list[int]:
    return [number for (number,) in fetch_prepared(SENT, ())]


def write(number: int, said: str = "") -> Any:
    """A transaction of its own with all that may be kept for its commit."""
    try:
        with transaction.atomic():
            share_commit()
            execute_prepared_later(INSERT, [number, said or str(number)])
            found = fetch_prepared_later(ROW, [number])
            execute_prepared_last(INSERT, [number * 100, "last"], lock=LOCK, of={"numbers": [number * 1000]})
        return found.get()
    finally:
        connection.close()


def together(*pieces: Callable[[], Any]) -> list[Any]:
    """What becomes of each, where all of them come while another commit is under way; in their order."""
    begun, go = threading.Event(), threading.Event()
    with ThreadPoolExecutor(len(pieces) + 1) as pool:

        def first() -> None:
            with commit_turns.take(NOTHING):
                begun.set()
                assert go.wait(MEET_WITHIN_S)

        held = pool.submit(first)
        assert begun.wait(MEET_WITHIN_S)
        running = []
        for at, piece in enumerate(pieces, 1):
            running.append(pool.submit(piece))
            while len(commit_turns._waiting) < at:
                pass
        go.set()
        held.result(MEET_WITHIN_S)
        return [each.exception(MEET_WITHIN_S) or each.result() for each in running]


def test_transactions_that_wait_are_one_and_each_has_its_rows() -> None:
    found = together(lambda: write(1), lambda: write(2), lambda: write(3))

    assert found == [[("1",)], [("2",)], [("3",)]]
    assert sent() == [1, 2, 3, 100, 200, 300, 1000, 2000, 3000]
    assert len(fetch_prepared(WRITER, [sent()])) == 1, "one transaction has written all of them"


def test_where_one_is_refused_the_others_are_committed_by_themselves() -> None:
    execute_prepared(INSERT, [2, "there already"])

    first, refused, third = together(lambda: write(1), lambda: write(2), lambda: write(3))

    assert (first, third) == ([("1",)], [("3",)])
    assert isinstance(refused, IntegrityError)
    assert sent() == [1, 2, 3, 100, 300]
    assert len(fetch_prepared(WRITER, [[1, 3]])) == 2


def test_a_row_that_somebody_keeps_locked_makes_those_wait_who_need_it() -> None:
    execute_prepared(INSERT, [1, "locked"])
    done = threading.Event()

    def change() -> None:
        try:
            with transaction.atomic():
                share_commit()
                execute_prepared_later(b"UPDATE shared SET said = 'changed' WHERE number = %s", [1])
        finally:
            connection.close()

    def write_another() -> None:
        write(2)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            fetch_prepared(b"SELECT 1 FROM shared WHERE number = %s FOR UPDATE", [1])
            both = pool.submit(together, change, write_another)
            assert done.wait(MEET_WITHIN_S)
        assert both.result(MEET_WITHIN_S) == [None, None]
    assert fetch_prepared(ROW, [1]) == [("changed",)]


def test_who_goes_alone_and_needs_a_row_that_somebody_keeps_locked_waits_for_it_outside_of_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And is then sent again whole, with for whom it works and with rows that others are asked for."""
    execute_prepared(INSERT, [1, "locked"])
    execute_prepared(INSERT, [2, "free"])
    tenant = new_id()
    asked, committed, run = list[bool](), list[str](), StatementPipeline.run

    def noted(self: StatementPipeline, raw: Any, ready: Any, *more: Any) -> Any:
        if any(b"WHERE number = $2" in each[0] for each in ready):
            asked.append(PATIENCE in [each[0] for each in ready])
        return run(self, raw, ready, *more)

    def change(number: int) -> list[tuple[Any, ...]]:
        try:
            with acting_for(tenant), transaction.atomic():
                share_commit()
                transaction.on_commit(lambda: committed.append(str(number)))
                execute_prepared_later(CHANGE, ["changed", number])
                found = fetch_prepared_later(ROW_AND_WHO, [number])
                execute_prepared_last(INSERT, [number * 100, "last"], lock=LOCK, of={"numbers": []})
            return found.get()
        finally:
            connection.close()

    monkeypatch.setattr(StatementPipeline, "run", noted)
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            fetch_prepared(b"SELECT 1 FROM shared WHERE number = %s FOR UPDATE", [1])
            first = pool.submit(change, 1)
            while not first.done() and not is_waited_for():
                pass
            assert pool.submit(change, 2).result(MEET_WITHIN_S) == [("changed", str(tenant))]
            assert (first.done(), committed) == (False, ["2"])
        assert first.result(MEET_WITHIN_S) == [("changed", str(tenant))]
    assert (committed, sent()) == (["2", "1"], [1, 2, 100, 200])
    assert sorted(asked) == [False, True, True], "each goes with patience; the first again without"


def test_what_is_refused_for_another_reason_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    execute_prepared(INSERT, [1, "there already"])
    counts, run = list[int](), StatementPipeline.run
    monkeypatch.setattr(StatementPipeline, "run", lambda *given: counts.append(len(given[2])) or run(*given))  # type: ignore[func-returns-value]

    with pytest.raises(IntegrityError):
        write(1)

    assert len(counts) == 1


@pytest.mark.parametrize("second", ["a tenant", "nobody", "the hub"])
def test_each_works_for_whom_it_works(second: str) -> None:
    """Also those who lead: what their connection was told is not what the others work for."""
    tenant, other = new_id(), new_id()
    scopes: dict[str, tuple[Callable[[], Any], str]] = {
        "a tenant": (lambda: acting_for(other), str(other)),
        "nobody": (acting_for_nobody, ""),
        "the hub": (hub_wide, ""),
    }
    begin, whom = scopes[second]
    with hub_wide():
        fetch_prepared(WHO, ())  # a connection that was told so for good

    def write_for(number: int) -> Any:
        with acting_for(tenant) if number % 2 else begin():
            try:
                with transaction.atomic():
                    share_commit()
                    execute_prepared_later(INSERT, [number, ""])
                    found = fetch_prepared_later(WHO, ())
                return found.get()
            finally:
                connection.close()

    found = together(*[lambda number=number: write_for(number) for number in range(4)])

    assert found == [[(str(tenant) if number % 2 else whom,)] for number in range(4)]
    assert len(fetch_prepared(WRITER, [[0, 2]])) == len(fetch_prepared(WRITER, [[1, 3]])) == 1
    assert len(fetch_prepared(WRITER, [[0, 1, 2, 3]])) == 2


def test_of_what_was_sent_when_the_connection_was_lost_nobody_says_that_it_was_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = StatementPipeline.run

    def lost(self: StatementPipeline, raw: Any, ready: Any, *more: Any, **named: Any) -> Any:
        found = run(self, raw, ready, *more, **named)
        if len(ready) > 6:
            raw.close()
            raise DatabaseError("lost")
        return found

    monkeypatch.setattr(StatementPipeline, "run", lost)

    found = together(lambda: write(1), lambda: write(2), lambda: write(3))

    assert all(isinstance(each, (DatabaseError, OperationalError)) for each in found)
    assert len(sent()) == 9, "each was sent once"


def test_where_the_connection_was_lost_before_anything_was_sent_the_others_are_committed_by_themselves() -> None:
    def lose_and_write() -> None:
        try:
            with transaction.atomic():
                share_commit()
                execute_prepared_later(INSERT, [1, ""])
                with open_direct_connection() as other:
                    other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
                while not is_hung_up(connection.connection):
                    pass
        finally:
            connection.close()

    lost, second, third = together(lose_and_write, lambda: write(2), lambda: write(3))

    assert isinstance(lost, OperationalError)
    assert (second, third) == ([("2",)], [("3",)])
    assert sent() == [2, 3, 200, 300]


def test_what_was_begun_before_its_commit_is_committed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun() -> None:
        try:
            with transaction.atomic():
                share_commit()
                execute_prepared(INSERT, [1, ""])
        finally:
            connection.close()

    with commit_turns.take(NOTHING), ThreadPoolExecutor(1) as pool:  # it would wait for this
        pool.submit(begun).result(MEET_WITHIN_S)

    assert sent() == [1]


def test_what_goes_last_is_sent_behind_what_follows_it_and_locks_by_itself() -> None:
    last: Any = {"lock": LOCK, "of": {"numbers": [3]}}
    with transaction.atomic():
        execute_prepared_last(INSERT, [1, "last"], **last)
        execute_prepared_later(b"DELETE FROM shared WHERE number = %s", [1])

    assert sent() == [1]
    execute_prepared_last(INSERT, [2, "last"], **last)
    assert sent() == [1, 2]


def test_what_goes_last_works_for_whom_it_was_given() -> None:
    """Also where nothing goes before it, and where what follows it works for somebody else."""
    one, other = new_id(), new_id()
    last: Any = {"lock": LOCK, "of": {"numbers": []}}
    with hub_wide():
        fetch_prepared(WHO, ())  # a connection that was told so for good

    with acting_for(one), transaction.atomic():
        share_commit()
        execute_prepared_last(INSERT_WHO, [1], **last)
    with transaction.atomic():
        share_commit()
        for number, tenant in enumerate((one, other, one), 2):
            with acting_for(tenant):
                execute_prepared_last(INSERT_WHO, [number], **last)
        with acting_for(other):
            execute_prepared_later(INSERT_WHO, [5])

    found = [said for number in range(1, 6) for (said,) in fetch_prepared(ROW, [number])]
    assert found == [str(tenant) for tenant in (one, one, other, one, other)]
