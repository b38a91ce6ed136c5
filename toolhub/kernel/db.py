"""What does a thread do with its connection while it waits, and whose clock decides?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models.functions import Now


def release_connection() -> None:
    """Give the connection back before waiting for something that is not the database. Never inside a transaction."""
    if not connection.in_atomic_block:
        connection.close()


def database_now() -> Any:
    """Now, by the one clock that all hosts share; for use in queries. Leases of one host are not judged by the clock of another."""
    return Now() if connection.vendor == "postgresql" else datetime.now(UTC)
