"""What does a thread do with its connection while it waits, and whose clock decides?"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models.functions import Now

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All that is read within is as it was at one moment. For reading only. Within a transaction it is as that transaction sees it.

    What holds one thing that was read against another needs it: what somebody writes between the two is no contradiction.
    """
    if connection.in_atomic_block:
        yield
    else:
        with connection.one_snapshot():  # type: ignore[attr-defined]  # both of our engines have it
            yield


def release_connection() -> None:
    """Give the connection back before waiting for something that is not the database. Never inside a transaction."""
    if not connection.in_atomic_block:
        connection.close()


def database_now() -> Any:
    """Now, by the one clock that all hosts share; for use in queries. Leases of one host are not judged by the clock of another."""
    return Now() if connection.vendor == "postgresql" else datetime.now(UTC)
