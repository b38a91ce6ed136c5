"""Shared commits: transactions of several threads that PostgreSQL is sent as one.

A transaction of which nothing was sent before its commit is a list of statements. While one is on its way, those of other threads that
may share (:func:`kernel.database.connections.share_commit`) wait, and go together as the next: one exchange, one commit, one wait for
the disk. Where the server refuses any of them nothing of any is done, and each goes again by itself, so that its error is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import OperationalError

from kernel.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg.pq.abc import PGresult

    from kernel.database.postgresql.pipeline import Ready

    Lock = tuple[bytes, Mapping[str, Sequence[Any]]]

# A row that somebody keeps locked makes those wait who need it, and not who would share with them or have the next turn.
PATIENCE = b"SET LOCAL lock_timeout = '500ms'"


@dataclass(slots=True, eq=False)
class PendingCommit:
    """A transaction that may share. ``scope``: for whom all its statements work. ``last``: those that go behind all of the others, and
    ``locks``, by which they lock in one order.

    ``is_sent``: it was part of one that has ended well, and ``results`` are there; ``error``: of one of which nobody knows the end.
    """

    scope: str
    statements: list[Ready]
    last: list[Ready]
    locks: list[Lock]
    results: list[PGresult] = field(default_factory=list)
    is_sent: bool = False
    error: Exception | None = None


def join_locks(group: Sequence[PendingCommit]) -> dict[bytes, dict[str, list[Any]]]:
    """Those of all of them, each once, with the lists of all."""
    joined: dict[bytes, dict[str, list[Any]]] = {}
    for statement, lists in (lock for each in group for lock in each.locks):
        whole = joined.setdefault(statement, {})
        for name, values in lists.items():
            whole.setdefault(name, []).extend(values)
    return joined


def note_sent(group: Sequence[PendingCommit], results: Sequence[PGresult]) -> None:
    at = 0
    for each in group:
        each.results, each.is_sent = list(results[at : at + len(each.statements)]), True
        at += len(each.statements)


def note_unknown(group: Sequence[PendingCommit]) -> None:
    """The connection was lost on the way: whether they were committed nobody knows, as of one that went alone."""
    for each in group:
        each.error = OperationalError(
            "The connection to the database was lost while several transactions were committed."
        )


commit_turns: Turns[PendingCommit] = Turns(fits=lambda one, other: one.scope == other.scope)
