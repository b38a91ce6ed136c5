"""Stored values of SQLite, which lets any column hold any type: how one of the wrong type is read.

Whoever writes past the hub can put a text where bytes are, or a number where an id is, and Django would stumble over it in each list
that the row is in. Ids and times that are none read as the two below, which no row has; of models that say ``any_type_is_read``,
texts, numbers and bytes are read from whatever is there. That it is of the wrong type, the verifier asks the database.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.backends.sqlite3 import base, operations
from django.utils.dateparse import parse_datetime

if TYPE_CHECKING:
    from collections.abc import Callable

NO_ID = UUID(int=2**128 - 1)
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"BigIntegerField", "IntegerField", "SmallIntegerField", "PositiveIntegerField"}
_TEXTS = {"CharField", "TextField"}


def _time(stored: bytes) -> datetime:
    try:
        return parse_datetime(stored.decode()) or NO_TIME
    except ValueError:  # no text, or a day that never comes
        return NO_TIME


sqlite3.register_converter("datetime", _time)  # by the declared type of a column, before Django's own


def _bytes(value: Any, expression: Any, connection: Any) -> bytes:
    del expression, connection
    if isinstance(value, bytes):
        return value
    return str(value).encode(errors="surrogatepass")  # never empty for what is none: that means that it is elsewhere


def _text(value: Any, expression: Any, connection: Any) -> str:
    del expression, connection
    if isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _number(value: Any, expression: Any, connection: Any) -> int:
    del expression, connection
    return value if isinstance(value, int) else -1


def _reader(field: Any) -> Callable[..., Any] | None:
    if field.null:  # of the models concerned: ids and times, which are read as such
        return None
    kind = field.get_internal_type()
    if kind == "BinaryField":
        return _bytes
    return _text if kind in _TEXTS else _number if kind in _NUMBERS else None


class DatabaseOperations(operations.DatabaseOperations):
    def get_db_converters(self, expression: Any) -> list[Any]:
        converters: list[Any] = super().get_db_converters(expression)
        field = expression.output_field
        if getattr(getattr(field, "model", None), "any_type_is_read", False) and (reader := _reader(field)):
            converters.append(reader)
        return converters

    def convert_uuidfield_value(self, value: Any, expression: Any, connection: Any) -> UUID | None:
        del expression, connection
        try:
            return None if value is None else UUID(value)
        except (ValueError, AttributeError, TypeError):
            return NO_ID

    def convert_datetimefield_value(self, value: Any, expression: Any, connection: Any) -> datetime | None:
        try:
            found: datetime | None = super().convert_datetimefield_value(value, expression, connection)
        except (ValueError, AttributeError, TypeError):
            return NO_TIME
        return found


class Cursor(base.SQLiteCursorWrapper):
    """Reads a text that is not UTF-8, which ends a result in the middle, with marks in it: the question is asked once more for that.

    Reading all texts so would cost each of them half again as much.
    """

    _asked: tuple[str, Any] = ("", None)
    _is_prepared = False
    _taken = 0

    def execute(self, query: str, params: Any = None) -> Any:
        self._asked, self._is_prepared, self._taken = (query, params), False, 0
        return super().execute(query, params)

    def run(self, query: str, params: Any) -> None:
        """A statement that is in SQLite's own words already."""
        self._asked, self._is_prepared, self._taken = (query, params), True, 0
        sqlite3.Cursor.execute(self, query, params)

    def fetchone(self) -> Any:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        size = self.arraysize if size is None else size
        return self._fetched(lambda: super(Cursor, self).fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._fetched(super().fetchall)

    def _fetched(self, fetch: Callable[[], list[Any]]) -> list[Any]:
        try:
            found = fetch()
        except sqlite3.OperationalError as error:
            query, params = self._asked
            if "decode to UTF-8" not in str(error) or not query.startswith("SELECT"):
                raise
            self.connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            if self._is_prepared:
                sqlite3.Cursor.execute(self, query, params)
            else:
                super().execute(query, params)
            if self._taken:  # 0 would be all
                super().fetchmany(self._taken)
            found = fetch()
        self._taken += len(found)
        return found
