"""SQLite engine: who writes next, when many threads of this process want to.

SQLite has one writer at a time, and one who waits for it looks again and again: of a crowd, some find the file locked until
they give up. Transactions of one process therefore take turns. Between processes the file's own lock decides, as ever; it
also decides when somebody holds his turn too long.

To open a connection means to read the whole schema, which takes longer than all that a piece of a call asks. So threads that come back
again and again keep theirs (:func:`kernel.database.connections.keep_connection`), for as long as the file is the one that they opened.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.backends.sqlite3 import base

from kernel.database.sqlite.statements import name_places, write_parameters
from kernel.database.sqlite.stored_values import Cursor, DatabaseOperations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel.database.prepared_statements import Parameters

TURN_WITHIN_S = 10.0  # then whoever waits goes on to the file's lock

_turns: dict[str, threading.Lock] = {}


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection has its turn from the beginning of a transaction to its end, or until it is closed in the middle."""

    ops_class = DatabaseOperations

    def __init__(self, settings_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(settings_dict, *args, **kwargs)
        self._has_turn = False
        self._only_reads = False
        self.is_kept = False
        self._file = 0  # that the connection was opened on

    def connect(self) -> None:
        super().connect()
        self._file = self._find_file()
        if self.is_kept:
            self.close_at = None

    def _find_file(self) -> int:
        """0: there is none, as of a database in memory."""
        with suppress(OSError):
            return Path(self.settings_dict["NAME"]).stat().st_ino
        return 0

    def release(self) -> None:
        """As :func:`kernel.database.connections.release_connection`. Another file may have been put in the place of the one that is
        open, from a backup perhaps; and one on which something failed is opened anew.
        """
        is_usable = self.autocommit == self.settings_dict["AUTOCOMMIT"] and not self.errors_occurred
        if not self.is_kept or not is_usable or self._file != self._find_file():
            self.close()

    def close_if_unusable_or_obsolete(self) -> None:
        if not self.is_kept:
            super().close_if_unusable_or_obsolete()
        elif not self.in_atomic_block:
            self.release()

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)

    def ask(self, *asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
        """The rows of each statement, as of the engine for PostgreSQL. Nothing travels here: one is run after the other."""
        return [self._run(statement, parameters)[0] for statement, parameters in asked]

    def change(self, statement: bytes, parameters: Parameters) -> int:
        """How many rows such a statement has changed."""
        return self._run(statement, parameters)[1]

    def change_later(self, statement: bytes, parameters: Parameters) -> None:
        """At once."""
        self._run(statement, parameters)

    def _run(self, statement: bytes, parameters: Parameters) -> tuple[list[tuple[Any, ...]], int]:
        """Its rows, and how many it has changed."""
        self.validate_no_broken_transaction()
        self.ensure_connection()
        with transaction.mark_for_rollback_on_error(self.alias), self.wrap_database_errors:
            cursor: Cursor = self.connection.cursor(factory=Cursor)
            cursor.run(name_places(statement), write_parameters(parameters))
            return cursor.fetchall(), cursor.rowcount

    @property
    def _turn(self) -> threading.Lock:
        return _turns.setdefault(str(self.settings_dict["NAME"]), threading.Lock())

    @contextmanager
    def one_snapshot(self) -> Iterator[None]:
        """A transaction that reads, all of it as it was at its first statement. It waits for no writer, and none for it."""
        self._only_reads = True
        try:
            with transaction.atomic(using=self.alias):
                yield
        finally:
            self._only_reads = False

    def _start_transaction_under_autocommit(self) -> None:
        if self._only_reads:
            self.cursor().execute("BEGIN DEFERRED")
            return
        self._has_turn = self._turn.acquire(timeout=TURN_WITHIN_S)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._end_turn()
            raise

    def _set_autocommit(self, autocommit: bool) -> None:
        if autocommit:
            self._end_turn()
        super()._set_autocommit(autocommit)  # type: ignore[misc]

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._end_turn()

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turn.release()
