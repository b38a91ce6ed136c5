"""How does a connection know for whom it works?

Before a statement, the connection takes the role and the tenant of :mod:`toolhub.kernel.tenancy`: within a transaction for
that transaction only, outside of one for the connection. What a connection was told last stays written on it, also in the pool, so
that it is told only what is new.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from toolhub.kernel.tenancy import HUB, current_scope

ROLE = "toolhub_app"  # owns nothing, so that row level security binds it
SETTING = "app.tenant"
_HAS_ROLE = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s AND pg_has_role(session_user, oid, 'MEMBER'))"
_TOLD = "toolhub_scope"
_UNKNOWN = "?"
_TELL = f"SELECT set_config('role', %s, %s), set_config('{SETTING}', %s, %s)"


_walled: set[tuple[str, ...]] = set()  # databases in which the role was found; it is not looked for again


class DatabaseWrapper(base.DatabaseWrapper):
    """``connection.walls``: whether the role exists. Without it there is one wall only, and `doctor` says so."""

    walls = False
    _of_transaction: str | None = None  # None: nothing was said to it, so it is as the connection is

    def init_connection_state(self) -> None:
        self._of_transaction = None
        super().init_connection_state()
        self.look_for_walls()

    def look_for_walls(self) -> None:
        """With each new connection until it is found; a migration that has just made the role calls it too."""
        database = tuple(str(self.settings_dict[part]) for part in ("HOST", "PORT", "NAME"))
        if database not in _walled:
            with self.wrap_database_errors:
                found = self.connection.execute(_HAS_ROLE, [ROLE]).fetchone()
            if found and found[0]:
                _walled.add(database)
        self.walls = database in _walled

    def create_cursor(self, name: str | None = None) -> Any:
        self.take_scope()
        return super().create_cursor(name)

    def take_scope(self) -> None:
        """Become who the current scope says. Called before each statement; asks the database only when it changes."""
        if not self.walls or self.connection is None:
            return
        scope, local = current_scope(), self.in_atomic_block
        told = getattr(self.connection, _TOLD, None)  # of the connection beneath, which several wrappers use in turn
        if local and self._of_transaction is not None:
            told = self._of_transaction
        if scope == told:
            return
        if self.connection.info.transaction_status == TransactionStatus.INERROR:
            return  # nothing but a rollback can follow
        role = "none" if scope == HUB else ROLE
        with self.wrap_database_errors:
            self.connection.execute(_TELL, [role, local, "" if scope == HUB else scope, local])
        if local:
            self._of_transaction = scope
        else:
            setattr(self.connection, _TOLD, scope)

    # What was set for a transaction, or within a savepoint, ends with it.
    def _commit(self) -> Any:
        self._of_transaction = None
        return super()._commit()  # type: ignore[misc]

    def _rollback(self) -> Any:
        self._of_transaction = None
        return super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._of_transaction = _UNKNOWN
