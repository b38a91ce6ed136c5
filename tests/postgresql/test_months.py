"""Months: does every fact find its table, is each table as closed as the whole, and is a call's second End refused in all of them?"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import Fact
from evidence.months.partitions import (
    ADD,
    ANALYZE,
    FIRST,
    LAST,
    TABLE,
    add_months,
    following_month,
    install_month_functions,
    list_months,
    list_partition_faults,
)
from evidence.search.facts_at import read_facts_at
from invocations.models import Invocation, State
from invocations.service_levels.report import build_service_level_report
from kernel.ids import lowest_id, new_id
from tests.postgresql.test_hub_role import login
from tests.postgresql.test_pairs import begun, call_of, witness
from tests.support.begin_end_pairs import keep_calls
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tests.conftest import Caller

__all__ = ["login"]
pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime.now(UTC)


def an_id(moment: datetime) -> UUID:
    """Any of that time."""
    drawn = new_id()
    return type(drawn)(int=lowest_id(moment).int | drawn.int & ((1 << 80) - 1))


def table_of(id: UUID) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = %s", [id])
        return str(cursor.fetchone()[0])


def faults() -> list[str]:
    with connection.cursor() as cursor:
        return list_partition_faults(cursor)


def months() -> dict[str, datetime | None]:
    with connection.cursor() as cursor:
        return {month.table: month.ends for month in list_months(cursor)}


def write_at(moment: datetime, tenant_id: UUID, monkeypatch: pytest.MonkeyPatch) -> UUID:
    with monkeypatch.context() as patched:
        patched.setattr(evidence, "new_id", partial(an_id, moment))
        return write_facts(tenant_id, 1)[0].pk


def test_every_month_to_come_has_a_table_with_all_that_the_whole_has() -> None:
    add_months(connection)  # as a hub does: a month may have begun since the tests' database was migrated
    found = months()
    (this,) = (name for name, ends in found.items() if ends == following_month(NOW))

    assert faults() == []
    assert {FIRST, LAST, this, f"{TABLE}_{following_month(NOW):%Y_%m}"} <= found.keys()
    assert add_months(connection) == 0


@pytest.mark.parametrize("years", [-30, 0, 2, 4000])
def test_a_fact_finds_a_table_whatever_the_clock_says(years: int, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = NOW + timedelta(days=365 * years)

    id = write_at(moment, new_id(), monkeypatch)

    assert Fact.objects.filter(pk=id).exists()
    assert table_of(id) == {-30: FIRST, 0: f"{TABLE}_{NOW:%Y_%m}"}.get(years, LAST)


def test_what_came_before_its_month_was_made_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody had added months for long: the last table becomes one for all the months that are in it."""
    last = max(ends for ends in months().values() if ends)
    ids = [write_at(last + timedelta(days=days), new_id(), monkeypatch) for days in (3, 40)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_filenode(%s::regclass)", [LAST])
        before = cursor.fetchone()
        # As if that time had come.
        with transaction.atomic():
            cursor.execute(f"SELECT prosrc FROM pg_proc WHERE proname = '{ADD}'")
            (body,) = cursor.fetchone()
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {ADD}() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS $body$"
                + body.replace("clock_timestamp()", f"'{last + timedelta(days=50)}'::timestamptz")
                + "$body$"
            )
            cursor.execute(f"SELECT {ADD}()")
            (table,) = {table_of(id) for id in ids}
            cursor.execute("SELECT pg_relation_filenode(%s::regclass)", [table])
            after, wrong = cursor.fetchone(), [each for each in faults() if "to come" not in each]
            ends = months()[table]
            transaction.set_rollback(True)

    assert (table, after, wrong) == (f"{TABLE}_{last:%Y_%m}", before, [])
    assert ends == following_month(last + timedelta(days=40))


def test_nobody_waits_for_the_statistics_of_all_months() -> None:
    """They take seconds of a large hub, and while tables are changed nobody begins a call."""
    last = max(ends for ends in months().values() if ends)
    held = list[Any]()

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if ANALYZE in sql:
            with psycopg.connect(address()) as outside:
                held.extend(
                    outside.execute(
                        "SELECT relation::regclass::text, mode FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
                        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                        " AND relation::regclass::text LIKE 'evidence_fact%'"
                    )
                )
            held.append("asked")
        return execute(sql, params, many, context)

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT prosrc FROM pg_proc WHERE proname = '{ADD}'")
        (body,) = cursor.fetchone()
        cursor.execute(
            f"CREATE OR REPLACE FUNCTION {ADD}() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS $body$"
            + body.replace("clock_timestamp()", f"'{last - timedelta(days=50)}'::timestamptz")
            + "$body$"
        )
        try:
            with connection.execute_wrapper(look):
                added = add_months(connection)
        finally:
            install_month_functions(connection)

    assert added > 0
    assert "ANALYZE" not in body
    assert held == ["asked"]
    assert faults() == []


def address() -> str:
    told = connection.settings_dict
    return psycopg.conninfo.make_conninfo(
        host=told["HOST"], port=told["PORT"], dbname=told["NAME"], user=told["USER"], password=told["PASSWORD"]
    )


@contextmanager
def reading() -> Iterator[psycopg.Connection[Any]]:
    """Somebody who reads facts, and has not ended, as a backup does."""
    with psycopg.connect(address()) as outside:
        outside.execute(f"SELECT FROM {TABLE} LIMIT 1")
        yield outside


def begin_meanwhile() -> None:
    """As far as locks go."""
    with psycopg.connect(address()) as other:
        other.execute("SET lock_timeout = '100ms'")
        other.execute(f"LOCK TABLE {TABLE} IN ROW EXCLUSIVE MODE")


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("days", [-40, 40])
def test_a_call_has_no_second_end_in_another_month_either(
    days: int, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a call that was made two months ago, so that both its Ends are younger."""
    id = an_id(NOW - timedelta(days=80))
    keep_calls(call_of(caller, id=id, state=State.CANCELLED, finished_at=NOW))
    call = Invocation.objects.get(pk=id)

    with pytest.raises(IntegrityError, match="fact_one_begin_one_end") as refused, transaction.atomic():
        monkeypatch.setattr(evidence, "new_id", partial(an_id, NOW + timedelta(days=days)))
        witness(call, Kind.INVOCATION_ENDED, "cancelled")

    assert isinstance(refused.value.__cause__, psycopg.errors.UniqueViolation)
    assert Fact.objects.of_calls(id).filter(kind=Kind.INVOCATION_ENDED).count() == 1


@pytest.mark.req("TOOLS-18")
def test_a_fact_that_is_much_older_than_its_call_is_refused(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be in a month in which nobody looks for it."""
    with (
        pytest.raises(IntegrityError, match=r"Call [0-9a-f-]{36} (has no Begin|is more than a day)"),
        transaction.atomic(),
    ):
        monkeypatch.setattr(evidence, "new_id", partial(an_id, NOW - timedelta(days=2)))
        begun(caller)

    assert not Invocation.objects.exists()


def test_facts_of_a_call_are_looked_for_from_its_month_on() -> None:
    month = next(ends for ends in sorted(filter(None, months().values())) if ends > NOW)

    plan = Fact.objects.of_calls(an_id(month + timedelta(days=2))).explain()

    assert FIRST not in plan
    assert f"{TABLE}_{NOW:%Y_%m}" not in plan
    assert f"{TABLE}_{month:%Y_%m}" in plan


def test_service_levels_look_into_no_month_that_is_over() -> None:
    """The report is read again each minute."""
    with CaptureQueriesContext(connection) as asked:
        build_service_level_report(Invocation.objects.all(), NOW + timedelta(days=60))
    (paired,) = (each["sql"] for each in asked if "EXISTS" in each["sql"] and f'"{TABLE}"' in each["sql"])

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {paired}")
        plan = str(cursor.fetchall())

    assert f"{TABLE}_{following_month(following_month(NOW)):%Y_%m}" in plan
    assert f"{TABLE}_{NOW:%Y_%m}" not in plan
    assert FIRST not in plan


def test_the_newest_facts_are_read_from_the_newest_month_first() -> None:
    """Without looking into each month for its newest."""
    write_facts(tenant := new_id(), 1)

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")  # as tables that are full
        plan = Fact.objects.filter(tenant_id=tenant).order_by("-id")[:1].explain()

    assert "Merge" not in plan
    assert "Sort" not in plan


@pytest.mark.req("TOOLS-18")
def test_nobody_truncates_a_month_and_only_its_owner_reads_one(login: str) -> None:
    write_facts(new_id(), 1)
    table = table_of(Fact.objects.latest("id").pk)
    with pytest.raises(IntegrityError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table}")
    refused = [
        f"SELECT * FROM {table}",
        f"INSERT INTO {table} SELECT * FROM {TABLE}",
        f"DELETE FROM {table}",
        f"ALTER TABLE {TABLE} DETACH PARTITION {table}",
        f"DROP TABLE {table}",
        f"CREATE TABLE mine PARTITION OF {TABLE} DEFAULT",
        f"CREATE OR REPLACE FUNCTION {ADD}() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    ]

    with psycopg.connect(login, autocommit=True) as outside:
        assert outside.execute(f"SELECT {ADD}()").fetchone() == (0,)  # this it may
        for statement in refused:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                outside.execute(statement)


@pytest.mark.parametrize(
    ("down", "up", "what"),
    [
        ("ALTER TABLE {} DISABLE ROW LEVEL SECURITY", "ALTER TABLE {} ENABLE ROW LEVEL SECURITY", "row level security"),
        ("GRANT SELECT ON {} TO PUBLIC", "REVOKE SELECT ON {} FROM PUBLIC", "rights of everybody"),
        (
            "ALTER TABLE {} DISABLE TRIGGER toolhub_no_truncate",
            "ALTER TABLE {} ENABLE ALWAYS TRIGGER toolhub_no_truncate",
            "toolhub_no_truncate",
        ),
        (
            "ALTER TABLE {} DISABLE TRIGGER toolhub_no_update",
            "ALTER TABLE {} ENABLE ALWAYS TRIGGER toolhub_no_update",
            "toolhub_no_update",
        ),
    ],
)
def test_doctor_says_what_a_month_lacks(down: str, up: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"{TABLE}_{NOW:%Y_%m}"
    with connection.cursor() as cursor:
        cursor.execute(down.format(table))
        try:
            with pytest.raises(SystemExit):
                call_command("doctor")
        finally:
            cursor.execute(up.format(table))

    (line,) = [each for each in capsys.readouterr().out.splitlines() if " evidence " in each]
    assert f"{table}: {what}" in line
    assert faults() == []


def test_facts_at_places_of_a_log_are_planned_once_for_all_months() -> None:
    tenant_id = new_id()
    write_facts(tenant_id, 3)
    with signing_with():
        seal_everything()
    for _ in range(8):  # PostgreSQL plans the first five with their values
        assert [fact.tenant_id for fact in read_facts_at(tenant_id, [0, 2, 99], newer=True)] == [tenant_id] * 2

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
            "WHERE statement LIKE '%evidence_fact%' AND statement LIKE '%unnest%'"
        )
        ((generic, custom),) = cursor.fetchall()
    assert generic >= 3
    assert custom <= 5
