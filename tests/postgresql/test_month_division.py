"""Division by month: does the table of a hub of before become the first month as it lies, and is it whole where that fails?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evidence.models import Fact
from evidence.months import partitions
from evidence.months.partitions import (
    FIRST,
    TABLE,
    following_month,
    is_divided,
)
from invocations.unfinished_calls.triggers import CALLS
from kernel.ids import lowest_id, new_id
from tests.postgresql.test_months import NOW, address, begin_meanwhile, faults, months, reading, table_of, write_at
from tests.postgresql.test_pairs import begun
from tests.support.evidence_logs import write_facts
from toolhub.database import post_migration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tests.conftest import Caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def as_in_a_new_hub(transactional_db: None) -> Iterator[None]:
    """What is divided while it has facts has no table for this month afterwards, which tests of this database may look for."""
    yield
    with connection.cursor() as cursor:
        if f"{TABLE}_{NOW:%Y_%m}" in months():
            return
        _undivide(cursor)
        cursor.execute(f"TRUNCATE {TABLE}")
    post_migration.after_migration(using="default")


def test_a_table_with_facts_becomes_the_first_part_as_it_lies_on_the_disk(caller: Caller) -> None:
    """As a hub of before is brought to this version."""
    begun(caller)
    write_facts(new_id(), 3)
    before, names = sorted(Fact.objects.values_list("id", "leaf")), set[Any]()
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [TABLE])
        names = set(cursor.fetchall())
        _undivide(cursor)
        cursor.execute("SELECT pg_relation_filenode(%s::regclass)", [TABLE])
        lay = cursor.fetchone()
    post_migration.after_migration(using="default")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_filenode(%s::regclass)", [FIRST])
        lies = cursor.fetchone()
        cursor.execute("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [TABLE])
        assert set(cursor.fetchall()) == names
        assert is_divided(cursor)

    assert (faults(), lies) == ([], lay)
    assert sorted(Fact.objects.values_list("id", "leaf")) == before
    assert {table_of(id) for id, _ in before} == {FIRST}
    assert months()[FIRST] in (following_month(NOW), following_month(following_month(NOW)))
    write_facts(new_id(), 1)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_table_is_divided_when_who_reads_it_has_ended(bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits behind it meanwhile: it gives way, and tries again."""
    write_facts(new_id(), 3)
    with connection.cursor() as cursor:
        _undivide(cursor)
    post_migration._put_up(connection)  # which a hub of before has
    if bounded:
        partitions.bound_first_part(connection)
    rests = list[float]()

    with reading() as reader:

        def rest(seconds: float) -> None:
            rests.append(seconds)
            begin_meanwhile()
            reader.rollback()

        monkeypatch.setattr(partitions, "sleep", rest)
        post_migration.after_migration(using="default")

    assert len(rests) == 1
    assert faults() == []


def test_no_call_is_looked_through_while_all_facts_are_locked() -> None:
    write_facts(new_id(), 3)
    with connection.cursor() as cursor:
        _undivide(cursor)

    with CaptureQueriesContext(connection) as said:
        post_migration.after_migration(using="default")

    statements = [each["sql"] for each in said]
    locked = next(at for at, sql in enumerate(statements) if "IN ACCESS EXCLUSIVE MODE" in sql)
    assert [sql for sql in statements[:locked] if f"FROM {CALLS}" in sql]
    assert not [sql for sql in statements[locked:] if f"FROM {CALLS}" in sql]
    assert faults() == []


def bounds() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE conname = %s", [partitions.BOUND])
        return [name for (name,) in cursor.fetchall()]


@pytest.fixture
def undivided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub of before, with facts; each lock is asked for once. Afterwards a hub of today."""
    write_facts(new_id(), 3)
    with connection.cursor() as cursor:
        _undivide(cursor)
    post_migration._put_up(connection)
    with monkeypatch.context() as patched:
        patched.setattr(partitions, "TRIES", 1)
        patched.setattr(partitions, "sleep", lambda _: None)
        yield
    post_migration.after_migration(using="default")
    assert (faults(), bounds()) == ([], [])


@pytest.mark.parametrize("error", [RuntimeError("no room on the disk"), KeyboardInterrupt("no room for patience")])
def test_a_table_that_could_not_be_divided_takes_facts_of_all_times(
    error: BaseException, undivided: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: Any, bound: UUID) -> None:
        assert bounds()
        raise error

    monkeypatch.setattr(post_migration, "_divide", fail)
    with pytest.raises(type(error), match="no room"):
        post_migration.after_migration(using="default")
    monkeypatch.undo()

    assert bounds() == []
    write_at(NOW + timedelta(days=90), new_id(), monkeypatch)


def test_a_migration_that_gets_no_turn_says_what_to_do(undivided: None) -> None:
    with reading(), pytest.raises(CommandError, match=r"in one long transaction.*Run it again when that has ended"):
        call_command("migrate", verbosity=0)

    assert bounds() == []


@pytest.mark.parametrize(
    ("error", "told"),
    [(None, "^Somebody"), (RuntimeError("no room"), r"not divided by month: RuntimeError\('no room'\)")],
)
def test_a_bound_that_cannot_be_taken_away_either_is_told(
    error: Exception | None,
    told: str,
    undivided: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who reads came between the bound and the division, and stays. What went wrong before is told too."""
    day = f"{following_month(NOW + partitions.ROOM):%Y-%m-%d}"
    with psycopg.connect(address()) as outside:

        def bound_and_read(connection: Any) -> UUID:
            bound = partitions.bound_first_part(connection)
            outside.execute(f"SELECT FROM {TABLE} LIMIT 1")
            if error:
                raise error
            return bound

        monkeypatch.setattr(post_migration, "bound_first_part", bound_and_read)
        with pytest.raises(CommandError, match=f"{told}.* Do so before {day}: from then on facts are refused"):
            post_migration.after_migration(using="default")
        monkeypatch.undo()

    with pytest.raises(SystemExit):
        call_command("doctor")
    (line,) = [each for each in capsys.readouterr().out.splitlines() if " evidence " in each]
    assert f"{TABLE}: months, and it takes no fact from {day} on" in line


@pytest.mark.parametrize(("days", "taken"), [(-20, False), (3, False), (90, True)])
def test_a_bound_that_a_killed_run_left_is_taken_if_there_is_time_before_it(
    days: int, taken: bool, undivided: None
) -> None:
    left = lowest_id(NOW + timedelta(days=days))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT {partitions.BOUND} CHECK (id < '{left}') NOT VALID")

    bound = partitions.bound_first_part(connection)

    assert (bound == left) is taken
    assert bound > lowest_id(NOW + timedelta(days=13))


def _undivide(cursor: Any) -> None:
    """As it was: one table, the constraint of pairs on it, nothing around it that is put up after migrations."""
    after = apps.get_model("evidence", "Fact")._meta.db_table
    assert after == TABLE
    cursor.execute(f"CREATE TABLE undivided (LIKE {TABLE} INCLUDING ALL)")
    cursor.execute(f"INSERT INTO undivided SELECT * FROM {TABLE}")
    cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'undivided'")
    copies = {definition.partition(" USING ")[2]: name for name, definition in cursor.fetchall()}
    cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [TABLE])
    wanted = {definition.partition(" USING ")[2]: name for name, definition in cursor.fetchall()}
    cursor.execute(f"DROP TABLE {TABLE} CASCADE")
    cursor.execute(f"ALTER TABLE undivided RENAME TO {TABLE}")
    for definition, name in wanted.items():
        cursor.execute(f"ALTER INDEX {copies[definition]} RENAME TO {name}")
    cursor.execute(
        f"CREATE UNIQUE INDEX fact_one_begin_one_end ON {TABLE} (invocation_id, kind) WHERE kind IN "
        "('invocation.began', 'dry_run.began', 'invocation.ended', 'dry_run.ended')"
    )
