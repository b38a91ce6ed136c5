"""Running processes: does a migration that nobody of before can work beside wait until they have ended?"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from kernel.variables import KEEPER, UPKEEP, WORKER
from toolhub.database.running_processes import find_roles_to_stop
from toolhub.startup import check_running_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.checks import CheckMessage

PACKED = ("evidence", "0002_packed_leaves")  # of which workers and keepers of before know nothing


@contextmanager
def at_work(name: str) -> Iterator[int]:
    """A process that is connected under this name; the number of its session."""
    told = connection.settings_dict
    with psycopg.connect(
        host=told["HOST"], port=told["PORT"], dbname=told["NAME"], user=told["USER"], password=told["PASSWORD"],
        application_name=name,
    ) as session:  # fmt: skip
        yield session.info.backend_pid


def ended_by(said: str) -> list[int]:
    """The sessions that the statement which a refusal gives would end."""
    found = re.search(
        r"SELECT pg_terminate_backend\((pid\) FROM pg_stat_activity WHERE application_name = '[^']+')", said
    )
    assert found
    with connection.cursor() as cursor:
        cursor.execute("SELECT (" + found[1])
        return [pid for (pid,) in cursor.fetchall()]


def look() -> list[CheckMessage]:
    return check_running_processes(None, databases=[connection.alias])


@pytest.mark.django_db
def test_migrate_refuses_beside_a_keeper_that_cannot_go_on_and_says_which() -> None:
    MigrationRecorder(connection).record_unapplied(*PACKED)

    with at_work("toolhub evidence-1 4711 keeper") as session:
        with pytest.raises(SystemCheckError) as caught:
            call_command("migrate", verbosity=0, skip_checks=False)
        assert ended_by(str(caught.value)) == [session]

    assert "keeper 4711 on evidence-1 works on this database" in str(caught.value)
    assert "evidence.0002_packed_leaves" in str(caught.value)
    assert PACKED not in MigrationRecorder(connection).applied_migrations()


@pytest.mark.django_db
def test_who_a_migration_does_not_name_goes_on_and_so_do_others_databases() -> None:
    MigrationRecorder(connection).record_unapplied(*PACKED)

    with at_work("toolhub evidence-1 4711 upkeep"), at_work("toolhub web-1 17 other"), at_work("psql"):
        assert look() == []


@pytest.mark.django_db
def test_a_process_of_a_version_that_says_no_role_may_be_any() -> None:
    MigrationRecorder(connection).record_unapplied(*PACKED)

    with at_work("toolhub web-1 17"):
        assert [each.msg.split(" works")[0] for each in look()] == ["a process of before 17 on web-1"]


@pytest.mark.django_db
def test_everybody_goes_on_where_nothing_is_to_come() -> None:
    with at_work("toolhub evidence-1 4711 keeper"):
        assert look() == []


@pytest.mark.django_db
def test_a_new_database_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda _: {})

    with at_work("toolhub worker-1 4711 worker"):
        assert look() == []


def test_migrations_name_roles_that_there_are() -> None:
    named = [
        each.stopped_first for each in MigrationLoader(None).disk_migrations.values() if hasattr(each, "stopped_first")
    ]

    assert named
    assert all(set(roles) <= {WORKER, UPKEEP, KEEPER} for roles in named)
    assert all(WORKER in roles for roles in named if UPKEEP in roles)  # a worker may do its work too


@pytest.mark.django_db
def test_each_role_hears_of_the_first_migration_that_it_cannot_be_beside() -> None:
    for step in (PACKED, ("invocations", "0003_unfinished_calls"), ("invocations", "0004_indexes_of_unfinished_calls")):
        MigrationRecorder(connection).record_unapplied(*step)

    assert find_roles_to_stop(connection) == {
        KEEPER: "evidence.0002_packed_leaves",
        WORKER: "evidence.0002_packed_leaves",
        UPKEEP: "invocations.0003_unfinished_calls",
    }
