"""What does a thread do with its connection while it waits?"""

from django.db import connection


def release_connection() -> None:
    """Give the connection back before waiting for something that is not the database. Never inside a transaction."""
    if not connection.in_atomic_block:
        connection.close()
