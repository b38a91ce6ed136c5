"""SQLite write turns: do the writers of one process take turns at a SQLite file, and is a turn always given back?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.db.utils import DEFAULT_DB_ALIAS, ConnectionHandler

from kernel.database.sqlite import base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITERS = 60


class File:
    """A database of its own, whatever the other tests run on."""

    def __init__(self, path: Path) -> None:
        self.handler = ConnectionHandler(
            {
                DEFAULT_DB_ALIAS: {
                    "ENGINE": "kernel.database.sqlite",
                    "NAME": str(path),
                    "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 0.1},
                }
            }
        )
        self.turn = base._turns.setdefault(str(path), threading.Lock())
        with self.connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("CREATE TABLE counted (number integer)")

    @property
    def connection(self) -> Any:
        """This thread's."""
        return self.handler[DEFAULT_DB_ALIAS]

    def write(self, number: int = 0) -> None:
        connection = self.connection
        connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO counted VALUES (%s)", [number])
            connection.commit()
        finally:
            connection.set_autocommit(True)

    def count(self) -> int:
        with self.connection.cursor() as cursor:
            found: int = cursor.execute("SELECT count(*) FROM counted").fetchone()[0]
        return found


@pytest.fixture
def file(tmp_path: Path, django_db_blocker: Any) -> Iterator[File]:
    with django_db_blocker.unblock():
        found = File(tmp_path / "turns.sqlite3")
        yield found
        found.connection.close()


def test_the_hub_writes_to_sqlite_in_turns() -> None:
    program = (settings.BASE_DIR / "toolhub" / "settings.py").read_text()

    assert '"ENGINE": "kernel.database.sqlite"' in program
    assert "django.db.backends.sqlite3" not in program


def test_of_many_writers_at_once_none_finds_the_file_locked(file: File) -> None:
    barrier, failed = threading.Barrier(WRITERS), []

    def work(number: int) -> None:
        try:
            barrier.wait(timeout=30)
            file.write(number)
        except Exception as error:  # noqa: BLE001
            failed.append(error)
        finally:
            file.connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert file.count() == WRITERS
    assert not file.turn.locked()


def begin(file: File) -> Any:
    connection = file.connection
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    assert file.turn.locked()
    return connection


def test_a_turn_ends_with_the_transaction_however_it_ends(file: File) -> None:
    for end in ("commit", "rollback"):
        connection = begin(file)
        getattr(connection, end)()
        connection.set_autocommit(True)
        assert not file.turn.locked(), end

    begin(file).close()
    assert not file.turn.locked()
    file.write()


def test_whoever_cannot_begin_has_no_turn(file: File, tmp_path: Path) -> None:
    other = ConnectionHandler(
        {DEFAULT_DB_ALIAS: file.connection.settings_dict | {"ENGINE": "django.db.backends.sqlite3"}}
    )[DEFAULT_DB_ALIAS]  # another process, which takes no turns
    other.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)

    with pytest.raises(OperationalError, match="locked"):
        file.write()

    assert not file.turn.locked()
    other.rollback()
    other.close()
    file.connection.close()
    file.write()


def test_whoever_waits_too_long_for_a_turn_asks_the_file(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "TURN_WITHIN_S", 0.01)
    file.turn.acquire()  # somebody who never gives it back

    file.write()

    assert file.count() == 1
    assert file.turn.locked()  # it was not his to give back
    file.turn.release()
