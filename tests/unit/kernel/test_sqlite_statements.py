"""Statements of SQLite: is a value written as Django writes it into a column?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from kernel.database.sqlite.statements import name_places, write_parameters

ID = UUID("019c0000-0000-7000-8000-000000000000")


def test_places_are_named_in_the_words_of_sqlite() -> None:
    assert name_places(b"SELECT %s, '100%%' WHERE a = %s") == "SELECT ?, '100%' WHERE a = ?"
    assert name_places(b"SELECT %(one)s, %(two)s, %(one)s") == "SELECT :one, :two, :one"


def test_ids_times_and_lists_are_written_as_columns_and_json_hold_them() -> None:
    east = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))

    assert write_parameters([ID, east, None, b"\0", 1, "x"]) == [
        ID.hex,
        "2026-01-02 01:04:05.000006",
        None,
        b"\0",
        1,
        "x",
    ]
    assert write_parameters({"at": datetime(2026, 1, 2, tzinfo=UTC)}) == {"at": "2026-01-02 00:00:00"}
    (listed,) = write_parameters([[ID, ["a", 1]]])
    assert json.loads(listed) == [ID.hex, ["a", 1]]
