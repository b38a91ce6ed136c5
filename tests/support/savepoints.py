"""Savepoints: left out where what a test begins with is written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_savepoints() -> Iterator[None]:
    """Services write in transactions of their own. In that of a test each is two more statements, which were more than half of those
    that came before a usual test. An error of the database inside ends the whole transaction, so nothing may provoke one there."""
    had = connection.features.uses_savepoints
    connection.features.uses_savepoints = False
    try:
        yield
    finally:
        connection.features.uses_savepoints = had
