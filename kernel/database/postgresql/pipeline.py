"""Pipeline: how several statements go to PostgreSQL in one way there and back.

By libpq's pipeline mode, entered for one exchange and left after it. psycopg's own pipelines send each statement by itself; on the
way of a call most of a statement's cost is its way. Statements are prepared once a connection. Their parameters have the types that
the statement gives them, so that one text is one prepared statement whatever it is asked with.
"""

from __future__ import annotations

import re
import select
from functools import cache
from typing import TYPE_CHECKING, Any

from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.waiting import Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psycopg import Connection
    from psycopg.pq.abc import PGconn, PGresult

    from kernel.database.prepared_statements import Parameters

    Ready = tuple[bytes, Sequence[Any] | None, Sequence[Format] | None, bytes]  # the last: as which role

_PLACE = re.compile(rb"%(?:[%s]|\((\w+)\)s)")
_KEPT = "toolhub_exchange"
_BEGIN, COMMIT = b"BEGIN", b"COMMIT"
_STALE = (b"0A000", b"26000")  # a cached plan that must not change its result; a prepared statement that is gone
_HANGS_UP = getattr(select, "POLLRDHUP", select.POLLHUP)  # the former on Linux only
_GOOD = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


@cache  # statements are constants, or built from models once
def _numbered(statement: bytes) -> tuple[bytes, tuple[str, ...]]:
    """With ``$1`` for ``%s`` or ``%(name)s``, and the names in their order, which are empty for ``%s``."""
    names: list[str] = []

    def numbered(found: re.Match[bytes]) -> bytes:
        if found[0] == b"%%":
            return b"%"
        name = (found[1] or b"").decode()
        if not name or name not in names:
            names.append(name)
            return b"$%d" % len(names)
        return b"$%d" % (names.index(name) + 1)

    return _PLACE.sub(numbered, statement), tuple(names)


class StatementPipeline:
    """What is known of one connection: which statements it has prepared, and how values are written and read."""

    def __init__(self, raw: Connection[Any]) -> None:
        self._values = Transformer(raw)
        # By role too: a statement that was last run as another role PostgreSQL plans anew, which takes ten times as long as to run it.
        self._prepared: dict[tuple[bytes, bytes], bytes] = {}
        self._names = 0

    @classmethod
    def of(cls, raw: Connection[Any]) -> StatementPipeline:
        found: StatementPipeline | None = raw.__dict__.get(_KEPT)
        if found is None:
            found = raw.__dict__[_KEPT] = cls(raw)
        return found

    @staticmethod
    def knows(raw: Connection[Any]) -> bool:
        """Whether the connection was used for one before."""
        return _KEPT in raw.__dict__

    def run(
        self, raw: Connection[Any], ready: Sequence[Ready], meanwhile: Callable[[], object] | None = None
    ) -> list[PGresult]:
        """The result of each. Where one fails, none that follows it is run, and its error is raised. ``meanwhile``: done while the
        database is at it.
        """
        pgconn, asked = raw.pgconn, len(ready)
        if not raw.autocommit and pgconn.transaction_status == TransactionStatus.IDLE:
            ready = [(_BEGIN, None, None, b""), *ready]
        known = dict(self._prepared)
        new: dict[int, tuple[tuple[bytes, bytes], bytes]] = {}  # which result says that which statement is prepared
        try:
            pgconn.enter_pipeline_mode()
            place = 0
            for query, values, formats, role in ready:
                name = known.get((query, role))
                if name is None:
                    self._names += 1
                    name = known[query, role] = b"toolhub_%d" % self._names
                    pgconn.send_prepare(name, query)
                    new[place] = (query, role), name
                    place += 1
                pgconn.send_query_prepared(name, values, formats)
                place += 1
            pgconn.pipeline_sync()
            if meanwhile is not None:
                meanwhile()
            results = raw.wait(_results(pgconn))
            pgconn.exit_pipeline_mode()
        except BaseException:
            raw.close()  # nobody knows what is still to come on it
            raise
        for number, result in enumerate(results):
            if result.status not in _GOOD:
                if result.error_field(DiagnosticField.SQLSTATE) in _STALE:
                    self._prepared.clear()  # a table was altered meanwhile: they are prepared anew, under other names
                raise errors.error_from_result(result, encoding=raw.info.encoding)
            if number in new:
                statement, name = new[number]
                self._prepared[statement] = name
        return [result for number, result in enumerate(results) if number not in new][-asked:]

    def ready(self, statement: bytes, parameters: Parameters, role: bytes = b"") -> Ready:
        query, names = _numbered(statement)
        if not names:
            return query, None, None, role
        values: Any = [parameters[name] for name in names] if names[0] else parameters  # type: ignore[call-overload]
        wanted = [PyFormat.BINARY if isinstance(value, bytes) else PyFormat.TEXT for value in values]
        return query, self._values.dump_sequence(values, wanted), self._values.formats, role

    def rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        self._values.set_pgresult(result)
        try:
            return self._values.load_rows(0, result.ntuples, tuple)
        finally:
            self._values.set_pgresult(None)


def is_hung_up(raw: Connection[Any]) -> bool:
    """Whether the server has closed the connection, as far as this side can tell without sending anything."""
    socket = select.poll()
    socket.register(raw.fileno(), _HANGS_UP)
    return bool(socket.poll(0))


def _results(pgconn: PGconn) -> Generator[Wait, int, list[PGresult]]:
    """For :meth:`psycopg.Connection.wait`: send what was queued, and take all that comes for it."""
    while pgconn.flush():
        if (yield Wait.RW) & Wait.R:
            pgconn.consume_input()
    found: list[PGresult] = []
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:  # between two statements
            if pgconn.status == ConnStatus.BAD:
                raise errors.OperationalError("The connection to the database was lost.")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return found
        elif result.status == ExecStatus.FATAL_ERROR and pgconn.status == ConnStatus.BAD:
            raise errors.error_from_result(result)
        else:
            found.append(result)
