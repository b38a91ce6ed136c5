"""Kept connections: does a thread that comes back find its connection to a SQLite file open, and never one to a file that is gone?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from django.db.utils import DEFAULT_DB_ALIAS, ConnectionHandler

from kernel.database import connections

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def make_file(path: Path, said: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE told (said text)")
        file.execute("INSERT INTO told VALUES (?)", [said])
        file.commit()


def read(connection: Any) -> str:
    with connection.cursor() as cursor:
        found: str = cursor.execute("SELECT said FROM told").fetchone()[0]
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "kept.sqlite3"
    make_file(made, "before")
    return made


@pytest.fixture
def connection(path: Path, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """This thread's, as of a hub whose database is this file."""
    handler = ConnectionHandler({DEFAULT_DB_ALIAS: {"ENGINE": "kernel.database.sqlite", "NAME": str(path)}})
    with django_db_blocker.unblock():
        found = handler[DEFAULT_DB_ALIAS]
        monkeypatch.setattr(connections, "connection", found)
        yield found
        found.close()


def test_a_thread_that_comes_back_finds_its_connection_open(connection: Any) -> None:
    connections.keep_connection()
    read(connection)
    opened = connection.connection

    connections.release_connection()
    connection.close_if_unusable_or_obsolete()  # as at the beginning and the end of each request

    assert connection.connection is opened


def test_any_other_thread_leaves_nothing_open(connection: Any) -> None:
    read(connection)

    connections.release_connection()

    assert connection.connection is None


def test_a_file_that_was_put_in_the_place_of_the_open_one_is_opened(
    connection: Any, path: Path, tmp_path: Path
) -> None:
    connections.keep_connection()
    assert read(connection) == "before"
    make_file(tmp_path / "backup.sqlite3", "after")
    (tmp_path / "backup.sqlite3").replace(path)

    connections.release_connection()

    assert read(connection) == "after"


def test_a_connection_that_went_wrong_is_not_kept(connection: Any) -> None:
    connections.keep_connection()
    read(connection)
    connection.connection.close()  # beneath, as when the driver gives up
    connection.errors_occurred = True

    connection.close_if_unusable_or_obsolete()

    assert read(connection) == "before"
