"""The exchange of statements: do statements that go to the database together do what they would do one by one?"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.types.json import Jsonb

from invocations.queue import claims, run_rows
from kernel.database.connections import work_while_committing
from kernel.database.postgresql import pipeline
from kernel.database.postgresql.base import DatabaseWrapper
from kernel.database.postgresql.expectations import UnmetExpectation
from kernel.database.postgresql.pipeline import _numbered
from kernel.database.prepared_statements import (
    execute_prepared,
    execute_prepared_later,
    fetch_prepared,
    fetch_prepared_later,
    fetch_prepared_together,
)
from kernel.database.tenancy import acting_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)
INSERT = b"INSERT INTO sent (number, said) VALUES (%s, %s)"
SENT = b"SELECT number FROM sent ORDER BY number"
WHO = b"SELECT current_setting('app.tenant', true)"


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE sent (number bigint PRIMARY KEY, said text, large text, UNIQUE (said) DEFERRABLE INITIALLY DEFERRED)"
        )
        cursor.execute("GRANT ALL ON sent TO PUBLIC")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE sent")


def sent() -> list[int]:
    return [number for (number,) in fetch_prepared(SENT, ())]


def ways(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each exchange from now on, how many statements went."""
    inner, found = DatabaseWrapper._exchange, list[int]()

    def counted(self: Any, *asked: Any, **named: Any) -> Any:
        found.append(len(self._later) + len(asked))
        return inner(self, *asked, **named)

    monkeypatch.setattr(DatabaseWrapper, "_exchange", counted)
    return found


def test_what_nobody_waits_for_goes_with_what_is_asked_next(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ways(monkeypatch)

    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        execute_prepared_later(INSERT, [2, "b"])
        assert counts == []
        assert sent() == [1, 2]

    assert counts == [3]
    assert sent() == [1, 2]


@pytest.mark.parametrize("within", [True, False], ids=["in a transaction", "outside of one"])
def test_several_are_asked_in_one_way_and_each_has_its_rows(within: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    execute_prepared(INSERT, [1, "a"])
    counts = ways(monkeypatch)
    asked = [(SENT, ()), (b"SELECT said FROM sent WHERE number = %s", [2]), (b"SELECT said FROM sent", ())]

    with transaction.atomic() if within else nullcontext():
        if within:
            execute_prepared_later(INSERT, [2, "b"])
        found = fetch_prepared_together(*asked)

    if within:
        assert (counts, found) == ([4], [[(1,), (2,)], [("b",)], [("a",), ("b",)]])
    else:
        assert (counts, found) == ([3], [[(1,)], [], [("a",)]])


def test_of_several_that_are_asked_together_the_first_that_fails_is_raised() -> None:
    with pytest.raises(DataError), transaction.atomic():
        fetch_prepared_together((SENT, ()), (b"SELECT 1 / %s::int", [0]), (SENT, ()))

    assert sent() == []


def test_what_is_left_goes_with_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ways(monkeypatch)

    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])

    assert counts == [2]
    assert sent() == [1]


@pytest.mark.parametrize("later", [False, True])
def test_work_for_the_commit_is_done_before_its_result_is_there_and_once(later: bool) -> None:
    seen = list[PipelineStatus]()

    for _ in range(2):
        with transaction.atomic():
            if later:
                execute_prepared_later(INSERT, [len(seen), str(len(seen))])
            if not seen:
                work_while_committing(lambda: seen.append(PipelineStatus(connection.connection.pgconn.pipeline_status)))

    assert seen == [PipelineStatus.ON]


def test_work_for_a_commit_that_is_not_made_is_left_out() -> None:
    seen: list[str] = []

    with suppress(LookupError), transaction.atomic():
        work_while_committing(lambda: seen.append("of the whole"))
        raise LookupError
    with transaction.atomic():
        with suppress(LookupError), transaction.atomic():
            work_while_committing(lambda: seen.append("of a savepoint"))
            raise LookupError
        execute_prepared(INSERT, [1, "a"])

    assert (seen, sent()) == ([], [1])


def test_a_plain_query_sees_it() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM sent")
            assert cursor.fetchone() == (1,)


def test_outside_of_a_transaction_nothing_is_kept_for_later() -> None:
    execute_prepared_later(INSERT, [1, "a"])

    assert connection._later == []  # type: ignore[attr-defined]
    assert sent() == [1]


def test_a_connection_is_opened_where_there_is_none() -> None:
    connection.close()
    assert fetch_prepared(b"SELECT 1", ()) == [(1,)]
    connection.close()
    assert execute_prepared(INSERT, [1, "a"]) == 1


def test_an_error_is_raised_where_the_statement_is_sent_and_nothing_after_it_is_run() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        execute_prepared_later(INSERT, [1, "b"])
        execute_prepared_later(INSERT, [2, "c"])
        sent()

    assert sent() == []


def test_who_swallows_the_error_cannot_go_on_in_the_transaction() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        execute_prepared_later(INSERT, [1, "b"])
        with pytest.raises(IntegrityError):
            sent()
        assert transaction.get_rollback()

    assert sent() == []


@pytest.mark.parametrize("second", [[1, "b"], [2, "a"]], ids=["at once", "deferred"])
def test_an_error_at_the_commit_leaves_nothing(second: list[Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        execute_prepared_later(INSERT, second)

    assert sent() == []
    assert connection.connection.info.transaction_status == TransactionStatus.IDLE


def test_an_error_in_a_savepoint_ends_that_alone() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        with pytest.raises(IntegrityError), transaction.atomic():
            execute_prepared_later(INSERT, [2, "b"])
            execute_prepared_later(INSERT, [1, "c"])
        execute_prepared_later(INSERT, [3, "d"])

    assert sent() == [1, 3]


class Away(Exception):
    pass


def test_what_was_not_sent_goes_with_the_savepoint_or_the_transaction_that_is_rolled_back() -> None:
    with pytest.raises(Away), transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        raise Away
    with transaction.atomic():
        execute_prepared_later(INSERT, [2, "b"])
        with pytest.raises(Away), transaction.atomic():
            execute_prepared_later(INSERT, [3, "c"])
            raise Away

    assert sent() == [2]


def test_what_would_have_failed_is_not_sent_before_its_savepoint_is_rolled_back() -> None:
    """Or the transaction around it would end with it."""
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        with pytest.raises(Away), transaction.atomic():
            execute_prepared_later(INSERT, [1, "b"])
            raise Away

    assert sent() == [1]


@pytest.mark.req("TOOLS-22")
def test_each_statement_is_bound_to_the_tenant_that_it_was_made_for() -> None:
    """Also one that waits while another tenant's is made."""
    one, other = uuid4(), uuid4()
    written = b"INSERT INTO sent (number, said) VALUES (%s, current_setting('app.tenant', true))"

    with transaction.atomic():
        with acting_for(one):
            execute_prepared_later(written, [1])
        with acting_for(other):
            execute_prepared_later(written, [2])
            assert fetch_prepared(WHO, ()) == [(str(other),)]
        with acting_for(one):
            assert fetch_prepared(WHO, ()) == [(str(one),)]

    assert fetch_prepared(b"SELECT said FROM sent ORDER BY number", ()) == [(str(one),), (str(other),)]
    with acting_for(one):
        assert fetch_prepared(WHO, ()) == [(str(one),)]


@pytest.mark.req("TOOLS-22")
def test_a_scope_that_was_told_with_a_statement_that_failed_is_told_again() -> None:
    one = uuid4()
    with acting_for(one):
        with pytest.raises(DataError, match="division by zero"):
            fetch_prepared(b"SELECT 1 / %s::int", [0])
        assert fetch_prepared(WHO, ()) == [(str(one),)]


@pytest.mark.req("TOOLS-22")
def test_a_scope_that_was_told_after_a_savepoint_is_told_again_when_that_is_rolled_back() -> None:
    one, other = uuid4(), uuid4()
    with transaction.atomic():
        with acting_for(one):
            savepoint = transaction.savepoint()
        with acting_for(other):
            assert fetch_prepared(WHO, ()) == [(str(other),)]
            transaction.savepoint_rollback(savepoint)
            assert fetch_prepared(WHO, ()) == [(str(other),)]


def test_one_text_is_one_prepared_statement_whatever_it_is_asked_with() -> None:
    for number in (1, 2**20, 2**40):
        execute_prepared(INSERT, [number, None if number == 1 else str(number)])

    found = fetch_prepared(b"SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO sent%%'", ())

    assert found == [(1,)]


def test_a_statement_that_could_not_be_prepared_is_tried_again() -> None:
    for _ in range(2):
        with pytest.raises(ProgrammingError, match="no_such_table"):
            fetch_prepared(b"SELECT 1 FROM no_such_table", ())

    assert sent() == []


def test_values_arrive_as_they_were_sent() -> None:
    id, at = uuid4(), datetime(2026, 11, 23, 4, 5, 6, 789, tzinfo=UTC)
    values = [b"\x00\xff'\\", id, at, True, None, 2**62, -1, 0.1, "ä\\'\"%s", ["a", "b"], [id], Jsonb({"a": [1, "ü"]})]
    asked = (
        b"SELECT %s::bytea, %s::uuid, %s::timestamptz, %s::boolean, %s::text, %s::bigint, %s::smallint, %s::float8, %s::text, "
        b"%s::text[], %s::uuid[], (%s::jsonb)->'a'->>1"
    )

    assert fetch_prepared(asked, values) == [(*values[:-1], "ü")]
    assert fetch_prepared(b"SELECT %(a)s::int + %(b)s::int * %(a)s::int, '100%%'", {"a": 2, "b": 3}) == [(8, "100%")]


def test_more_goes_both_ways_at_once_than_sockets_hold() -> None:
    large = "x" * 20_000_000
    with transaction.atomic():
        for number in range(2):
            execute_prepared_later(b"INSERT INTO sent (number, large) VALUES (%s, %s)", [number, large])
        found = fetch_prepared(b"SELECT large FROM sent UNION ALL SELECT %s::text", [large])

    assert [len(each) for (each,) in found] == [20_000_000] * 3


def test_places_are_numbered_once_each() -> None:
    assert _numbered(b"a %s b %s 5%%") == (b"a $1 b $2 5%", ("", ""))
    assert _numbered(b"%(x)s %(y)s %(x)s") == (b"$1 $2 $1", ("x", "y"))


def test_a_connection_that_is_lost_is_an_operational_error_and_the_next_one_works() -> None:
    lost = b"SELECT pg_terminate_backend(pg_backend_pid())"

    with pytest.raises(OperationalError):
        fetch_prepared(lost, ())
    connection.close()

    with pytest.raises(OperationalError), transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        fetch_prepared(lost, ())
    connection.close()
    assert sent() == []


def test_a_statement_that_takes_too_long_leaves_the_connection_in_use() -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 20")
        with pytest.raises(OperationalError, match="timeout"):
            fetch_prepared(b"SELECT pg_sleep(60)", ())

    assert sent() == []


def test_a_value_that_cannot_be_written_ends_the_block_that_gave_it() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        with pytest.raises(UnicodeEncodeError), transaction.atomic():
            execute_prepared_later(INSERT, [2, "b"])
            execute_prepared_later(INSERT, [3, "\ud800"])
    with pytest.raises(UnicodeEncodeError), transaction.atomic():
        execute_prepared_later(INSERT, [4, "\ud800"])

    assert sent() == [1]


def test_what_is_changed_after_it_was_given_is_stored_as_it_was() -> None:
    given = {"a": "then"}
    with transaction.atomic():
        execute_prepared_later(b"INSERT INTO sent (number, said) VALUES (%s, %s::jsonb->>'a')", [1, Jsonb(given)])
        given["a"] = "now"

    assert fetch_prepared(b"SELECT said FROM sent", ()) == [("then",)]


def test_a_table_that_is_altered_costs_one_failure() -> None:
    everything = b"SELECT * FROM sent"
    assert fetch_prepared(everything, ()) == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sent ALTER said TYPE varchar(50)")

    with pytest.raises(NotSupportedError, match="cached plan"):
        fetch_prepared(everything, ())
    assert fetch_prepared(everything, ()) == []


def test_a_process_that_is_told_to_end_at_the_commit_ends_and_its_connection_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told_to_end(_pgconn: Any) -> None:
        raise SystemExit

    with pytest.raises(SystemExit), transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        monkeypatch.setattr(pipeline, "_results", told_to_end)
    monkeypatch.undo()

    assert fetch_prepared(b"SELECT 1", ()) == [(1,)]
    with transaction.atomic():
        execute_prepared_later(INSERT, [2, "b"])
    assert 2 in sent()


@pytest.mark.req("TOOLS-27")
def test_whether_a_call_waits_is_not_read_from_all_calls() -> None:
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("PREPARE looks AS " + claims.WAITING.decode())
        cursor.execute("EXPLAIN EXECUTE looks")
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("DEALLOCATE looks")

    assert "invocations_unfinishedcall" in plan
    assert "invocations_invocation" not in plan


@pytest.mark.req("TOOLS-27")
def test_which_call_is_next_is_not_read_from_all_calls() -> None:
    """Whose turn it is, the narrow rows say. The rows of the calls are locked one by one until one is free."""
    statement, names = _numbered(run_rows.write_claim(claims.POSTGRESQL))
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("PREPARE claim AS " + statement.decode())
        cursor.execute(f"EXPLAIN EXECUTE claim ({', '.join(['NULL'] * len(names))})")
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("DEALLOCATE claim")

    assert "Seq Scan on invocations_invocation" not in plan
    assert plan.index("LockRows") > plan.index("Sort")  # above the sort all that wait would be looked up


def test_a_value_that_cannot_be_written_harms_nothing() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
    with pytest.raises(ProgrammingError), transaction.atomic():
        execute_prepared_later(INSERT, [2, object()])

    assert sent() == [1]


def test_a_statement_is_prepared_once_for_each_role_that_asks_it() -> None:
    """One plan for two roles would be made anew each time that the role changes."""
    asked = b"SELECT count(*) FROM sent"
    tenant = uuid4()

    for _ in range(3):
        fetch_prepared(asked, ())
        with acting_for(tenant):
            fetch_prepared(asked, ())

    prepared = fetch_prepared(
        b"SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement = %s", [asked.decode()]
    )
    assert prepared == [(3,), (3,)]


def test_an_expectation_that_is_not_met_fails_where_its_transaction_ends() -> None:
    expect = b"SELECT toolhub_expect(EXISTS (SELECT FROM sent WHERE number = %s), %s)"

    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        execute_prepared_later(expect, [1, "the first"])
    with pytest.raises(UnmetExpectation) as unmet, transaction.atomic():
        execute_prepared_later(INSERT, [2, "b"])
        execute_prepared_later(expect, [3, "the third"])

    assert unmet.value.expected == "the third"
    assert sent() == [1]


def test_rows_of_a_statement_that_goes_later_are_there_when_it_was_sent() -> None:
    with transaction.atomic():
        execute_prepared_later(INSERT, [1, "a"])
        found = fetch_prepared_later(SENT, ())
        with pytest.raises(RuntimeError):
            found.get()

    assert found.get() == [(1,)]
