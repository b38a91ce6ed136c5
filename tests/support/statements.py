"""Statements: what a database would never end by itself."""

from __future__ import annotations

from typing import Any

from django.db import connection

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n WHERE i < 0"


def run_endless_statement(*_: Any, **__: Any) -> Any:
    """In the place of a function that asks the database."""
    with connection.cursor() as cursor:
        cursor.execute(ENDLESS)
