"""PostgreSQL engine: how a connection knows for whom it works.

Before a statement, the connection takes the role and the tenant of :mod:`kernel.database.tenancy`: within a transaction for
that transaction only, outside of one for the connection. What a connection was told last stays written on it, also in the pool, so
that it is told only what is new.

Statements whose result nobody waits for are kept until one comes whose result somebody wants, or the transaction ends, and go to the
database together with it (:mod:`kernel.database.postgresql.pipeline`). So an error of theirs is raised there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.backends.postgresql import base
from psycopg.errors import LockNotAvailable
from psycopg.pq import TransactionStatus

from kernel.database.postgresql.expectations import find_unmet
from kernel.database.postgresql.pipeline import COMMIT, StatementPipeline, is_hung_up
from kernel.database.postgresql.shared_commits import (
    PATIENCE,
    PendingCommit,
    commit_turns,
    join_locks,
    note_sent,
    note_unknown,
)
from kernel.database.tenancy import HUB, current_scope
from kernel.fault_injection import inject_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.pq.abc import PGresult

    from kernel.database.postgresql.pipeline import Ready
    from kernel.database.postgresql.shared_commits import Lock
    from kernel.database.prepared_statements import Parameters

ROLE = "toolhub_app"  # owns nothing, so that row level security binds it
SETTING = "app.tenant"
_HAS_ROLE = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s AND pg_has_role(session_user, oid, 'MEMBER'))"
_TOLD = "toolhub_scope"
_UNKNOWN = "?"
# Of what is prepared, in functions too. Left to itself, PostgreSQL plans some of it for each call, which takes four times as long as
# running it. So what chooses a partial index stands in the statement as a word: a plan for any parameter cannot use it.
_PLAN_ONCE = "SET plan_cache_mode = force_generic_plan"
# A plan that is kept is older than most rows: made while a table is small, as in a new hub or the first hour of a month, it would read
# the whole table for one row until the next ANALYZE. By the price of a disk that turns, PostgreSQL prefers that up to some ten pages.
_PAGES_LIE_NEAR = "SET random_page_cost = 1.1"
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_TELL = f"SELECT set_config('role', %s, %s), set_config('{SETTING}', %s, %s)".encode()


def _role(scope: str | None = None) -> bytes:
    """As which role a statement is run for that scope; None: for the current one."""
    return b"" if (current_scope() if scope is None else scope) == HUB else ROLE.encode()


def _words_for(scope: str, *, local: bool) -> list[object]:
    """What a connection, or for ``local`` its transaction, is told so that it works for that scope."""
    is_hub = scope == HUB
    return ["none" if is_hub else ROLE, local, "" if is_hub else scope, local]


class LaterRows:
    """The rows of a statement that goes with what follows it; they are there when that was asked."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] | None = None

    def take(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def get(self) -> list[tuple[Any, ...]]:
        if self._rows is None:
            raise RuntimeError("The statement has not been sent, or failed.")
        return self._rows


_walled: set[tuple[str, ...]] = set()  # databases in which the role was found; it is not looked for again


class DatabaseWrapper(base.DatabaseWrapper):
    """``connection.walls``: whether the role exists. Without it there is one wall only, and `doctor` says so."""

    walls = False
    _of_transaction: str | None = None  # None: nothing was said to it, so it is as the connection is

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._later: list[tuple[Ready, LaterRows | None]] = []
        self._told_at: list[int] = []  # where among them the connection is told for whom it works
        self._last: list[Ready] = []
        self._locks: list[Lock] = []  # of those
        self._shares_commit = False
        self._while_committing: Callable[[], object] | None = None

    def init_connection_state(self) -> None:
        self._forget_transaction()
        super().init_connection_state()
        self.look_for_walls()
        if not StatementPipeline.knows(self.connection):
            with self.wrap_database_errors:
                self.connection.execute(f"{_PLAN_ONCE}; {_PAGES_LIE_NEAR}")

    def look_for_walls(self) -> None:
        """With each new connection until it is found; a migration that has just made the role calls it too."""
        database = tuple(str(self.settings_dict[part]) for part in ("HOST", "PORT", "NAME"))
        if database not in _walled:
            with self.wrap_database_errors:
                found = self.connection.execute(_HAS_ROLE, [ROLE]).fetchone()
            if found and found[0]:
                _walled.add(database)
        self.walls = database in _walled

    @contextmanager
    def one_snapshot(self) -> Iterator[None]:
        """A transaction that reads, all of it as it was at its first statement."""
        with transaction.atomic(using=self.alias):
            with self.wrap_database_errors:
                self.connection.execute(_SNAPSHOT)  # before anything is asked, also for whom it works
            yield

    def create_cursor(self, name: str | None = None) -> Any:
        with transaction.mark_for_rollback_on_error(self.alias):
            if scope := self._scope_to_tell():
                self._tell(*scope)
            elif self._later or self._last:
                self._exchange()
        return super().create_cursor(name)

    def _scope_to_tell(self) -> tuple[str, list[object]] | None:
        """The current scope and what makes the connection take it; None where it has it, or nothing but a rollback can follow."""
        if not self.walls or self.connection is None:
            return None
        scope = current_scope()
        if scope == self._find_scope() or self.connection.info.transaction_status == TransactionStatus.INERROR:
            return None
        return scope, _words_for(scope, local=self.in_atomic_block)

    def _find_scope(self) -> str | None:
        """For which scope the next statement would work."""
        if self.in_atomic_block and self._of_transaction is not None:
            return self._of_transaction
        # Of the connection beneath, which several wrappers use in turn.
        told: str | None = getattr(self.connection, _TOLD, None)
        return told

    def _tell(self, scope: str, words: list[object], *asked: tuple[bytes, Parameters]) -> list[PGresult]:
        _, *results = self._exchange((_TELL, words), *asked)
        self._note_scope(scope)  # a transaction that failed takes it back
        return results

    def _note_scope(self, scope: str) -> None:
        if self.in_atomic_block:
            self._of_transaction = scope
        else:
            setattr(self.connection, _TOLD, scope)

    def ask(self, *asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
        """The rows of each statement: constants, or built from models once, of which none depends on what another finds."""
        return [StatementPipeline.of(self.connection).rows(result) for result in self._asked(*asked)]

    def ask_by_scope(self, *asked: tuple[str, bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
        """The same of statements of which each works for a scope of its own, in one way there and back."""
        self.ensure_connection()
        with transaction.mark_for_rollback_on_error(self.alias):
            exchange, told = StatementPipeline.of(self.connection), self._find_scope()
            ready: list[Ready] = []
            places = []
            for scope, statement, parameters in asked:
                if self.walls and scope != told:
                    ready.append(exchange.ready(_TELL, _words_for(scope, local=self.in_atomic_block)))
                    told = scope
                places.append(len(ready))
                ready.append(exchange.ready(statement, parameters, _role(scope)))
            results = self._send(ready)
        if self.walls and told is not None:
            self._note_scope(told)
        return [exchange.rows(results[place]) for place in places]

    def change(self, statement: bytes, parameters: Parameters) -> int:
        """How many rows such a statement has changed."""
        (result,) = self._asked((statement, parameters))
        return result.command_tuples or 0

    def _asked(self, *asked: tuple[bytes, Parameters]) -> list[PGresult]:
        self.ensure_connection()
        with transaction.mark_for_rollback_on_error(self.alias):
            if scope := self._scope_to_tell():
                return self._tell(*scope, *asked)
            return self._exchange(*asked)

    def change_later(self, statement: bytes, parameters: Parameters) -> None:
        """Send it with what follows in this transaction; outside of one, at once."""
        if self.in_atomic_block:
            self._keep(statement, parameters, None)
        else:
            self.change(statement, parameters)

    def ask_later(self, statement: bytes, parameters: Parameters) -> LaterRows:
        """The same of one that has rows."""
        found = LaterRows()
        if self.in_atomic_block:
            self._keep(statement, parameters, found)
        else:
            found.take(*self.ask((statement, parameters)))
        return found

    def _keep(self, statement: bytes, parameters: Parameters, found: LaterRows | None) -> None:
        self.ensure_connection()
        with transaction.mark_for_rollback_on_error(self.alias), self.wrap_database_errors:
            exchange = StatementPipeline.of(self.connection)
            # Now: who asks hears of a value that cannot be written.
            ready = exchange.ready(statement, parameters, _role())
            self._keep_scope(exchange)
            self._later.append((ready, found))

    def _keep_scope(self, exchange: StatementPipeline) -> None:
        """What is kept from now on works for the current scope."""
        if scope := self._scope_to_tell():
            if self._last:
                self._exchange()  # they would be behind it, and work for the one that it was told before
            self._told_at.append(len(self._later))
            self._later.append((exchange.ready(_TELL, scope[1]), None))
            self._note_scope(scope[0])

    def change_last(self, statement: bytes, parameters: Parameters, lock: Lock) -> None:
        """As :func:`kernel.database.prepared_statements.execute_prepared_last`."""
        if not self.in_atomic_block:
            self.change(statement, parameters)
            return
        self.ensure_connection()
        with transaction.mark_for_rollback_on_error(self.alias), self.wrap_database_errors:
            exchange = StatementPipeline.of(self.connection)
            ready = exchange.ready(statement, parameters, _role())
            self._keep_scope(exchange)
            self._last.append(ready)
            self._locks.append(lock)

    def share_commit(self) -> None:
        """As :func:`kernel.database.connections.share_commit`."""
        self._shares_commit = self.in_atomic_block

    def work_while_committing(self, work: Callable[[], object]) -> None:
        """As :func:`kernel.database.connections.work_while_committing`."""
        self._while_committing = work

    def _exchange(
        self, *asked: tuple[bytes, Parameters], meanwhile: Callable[[], object] | None = None
    ) -> list[PGresult]:
        self.ensure_connection()  # says so where it was lost within a transaction
        with self.wrap_database_errors:
            exchange = StatementPipeline.of(self.connection)
            ready = [exchange.ready(*each, _role()) for each in asked]
        return self._send(ready, meanwhile)

    def _send(self, ready: list[Ready], meanwhile: Callable[[], object] | None = None) -> list[PGresult]:
        """Behind what was kept; the results of ``ready``."""
        exchange = StatementPipeline.of(self.connection)
        kept = [*self._later, *((each, None) for each in self._last)]
        self._forget_kept()
        try:
            with self.wrap_database_errors:
                results = exchange.run(self.connection, [*(each for each, _ in kept), *ready], meanwhile)
        except DatabaseError as error:
            if unmet := find_unmet(error):
                raise unmet from error
            raise
        for (_, found), result in zip(kept, results, strict=False):
            if found is not None:
                found.take(exchange.rows(result))
        return results[len(kept) :]

    def _forget_kept(self) -> None:
        self._later, self._told_at, self._last, self._locks = [], [], [], []

    def _forget_transaction(self) -> None:
        """What was set for a transaction, or within a savepoint, ends with it."""
        self._forget_kept()
        self._of_transaction, self._while_committing, self._shares_commit = None, None, False

    def _commit(self) -> None:
        try:
            if self._shares_commit and (mine := self._build_pending_commit()):
                self._commit_shared(mine)
            elif self._later or self._last or self._while_committing:
                self._exchange((COMMIT, ()), meanwhile=self._while_committing)
            else:
                super()._commit()  # type: ignore[misc]
        except DatabaseError:
            raise  # Django rolls back
        except BaseException:
            self.close()  # Django ends the block on this connection all the same, and would raise for its state instead
            raise
        finally:
            self._forget_transaction()

    def _build_pending_commit(self) -> PendingCommit | None:
        """None where something was sent already, or it works for several, or there is work to be done meanwhile."""
        is_begun = self.connection is None or self.connection.info.transaction_status != TransactionStatus.IDLE
        if is_begun or self._while_committing or self._told_at not in ([], [0]):
            return None
        scope = getattr(self.connection, _TOLD, None) if self._of_transaction is None else self._of_transaction
        statements = [ready for ready, _ in self._later[len(self._told_at) :]]
        return PendingCommit(current_scope() if scope is None else scope, statements, self._last, self._locks)

    def _commit_shared(self, mine: PendingCommit) -> None:
        with commit_turns.take(mine) as group:
            if len(group) == 1:
                inject_fault("commits.alone")
                if self._commit_patiently():
                    return
            elif group:
                self._commit_group(group)
        if mine.error is not None:
            raise mine.error
        if not mine.is_sent:
            self._exchange((COMMIT, ()))
            return
        exchange = StatementPipeline.of(self.connection)
        for (_, found), result in zip(self._later[len(self._told_at) :], mine.results, strict=True):
            if found is not None:
                found.take(exchange.rows(result))

    def _commit_patiently(self) -> bool:
        """Within a turn, for which others wait. False where it would have waited for a lock any longer: nothing of it was done, and it
        may go again as it was, outside of the turn.
        """
        kept = self._later, self._told_at, self._last, self._locks
        self._later = [(StatementPipeline.of(self.connection).ready(PATIENCE, ()), None), *self._later]
        try:
            self._exchange((COMMIT, ()))
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            with self.wrap_database_errors:
                self.connection.rollback()
            self._later, self._told_at, self._last, self._locks = kept
            return False
        return True

    def _commit_group(self, group: list[PendingCommit]) -> None:
        """On this connection. What the server refuses is left for each to send alone, as is all where the connection is lost already:
        what is sent on it may be committed or not, as far as anybody could know.
        """
        raw = self.connection
        if is_hung_up(raw):
            return
        exchange = StatementPipeline.of(raw)
        before = [*(ready for ready, _ in self._later[: len(self._told_at)]), exchange.ready(PATIENCE, ())]
        ready = [*before, *(ready for each in group for ready in each.statements)]
        ready += [exchange.ready(*each, _role()) for each in join_locks(group).items()]
        ready += [last for each in group for last in each.last]
        inject_fault("commits.taken")
        try:
            with self.wrap_database_errors:
                results = exchange.run(
                    raw, [*ready, exchange.ready(COMMIT, ())], meanwhile=lambda: inject_fault("commits.sent")
                )
        except BaseException as error:
            if isinstance(error, DatabaseError) and not raw.closed:
                with self.wrap_database_errors:
                    raw.rollback()
                return
            note_unknown(group[1:])
            raise
        note_sent(group, results[len(before) :])
        inject_fault("commits.committed")

    def _rollback(self) -> Any:
        self._forget_transaction()
        return super()._rollback()  # type: ignore[misc]

    def _savepoint_commit(self, sid: str) -> None:
        if self._later or self._last:
            self._exchange()  # whose failure Django ends by rolling back to the savepoint, and not all that is around it
        super()._savepoint_commit(sid)  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        self._forget_kept()
        self._while_committing = None
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._of_transaction = _UNKNOWN
