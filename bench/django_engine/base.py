"""Django's engine, with what the hub asks of one: rows of constant statements, and each statement bound to its tenant.

Nothing is prepared but what psycopg prepares itself (``prepare_threshold``), and nothing goes together with anything: what nobody
waits for is sent at once, and whom a statement works for is told before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.backends.postgresql import base

from kernel.database.postgresql import base as ours

if TYPE_CHECKING:
    from kernel.database.prepared_statements import Parameters

_IS_SET_UP = "bench_is_set_up"


class DatabaseWrapper(ours.DatabaseWrapper):
    def init_connection_state(self) -> None:
        base.DatabaseWrapper.init_connection_state(self)
        self._forget_transaction()
        self.look_for_walls()
        if _IS_SET_UP not in self.connection.__dict__:
            self.connection.__dict__[_IS_SET_UP] = True
            self.connection.execute(ours._PLAN_ONCE)

    def create_cursor(self, name: str | None = None) -> Any:
        with transaction.mark_for_rollback_on_error(self.alias):
            if found := self._scope_to_tell():
                scope, words = found
                with self.wrap_database_errors:
                    base.DatabaseWrapper.create_cursor(self).execute(ours._TELL, words)
                self._note_scope(scope)
        return base.DatabaseWrapper.create_cursor(self, name)

    def ask(self, *asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
        found: list[list[tuple[Any, ...]]] = []
        with self.cursor() as cursor:
            for statement, parameters in asked:
                cursor.execute(statement, parameters or None)  # type: ignore[arg-type]  # psycopg takes bytes as well
                found.append(cursor.fetchall())
        return found

    def change(self, statement: bytes, parameters: Parameters) -> int:
        with self.cursor() as cursor:
            cursor.execute(statement, parameters or None)  # type: ignore[arg-type]
            return int(cursor.rowcount)

    def change_later(self, statement: bytes, parameters: Parameters) -> None:
        self.change(statement, parameters)
