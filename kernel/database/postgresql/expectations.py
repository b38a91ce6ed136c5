"""Expectations: what has to hold for a transaction to be committed, where the database itself can tell.

So the commit can go with the statement that it depends on, and what that has locked is locked for no way back and forth. The function
comes with a migration (``access``).
"""

from __future__ import annotations

from django.db import DatabaseError

STATE = "TH001"  # of SQL; no class of PostgreSQL's own begins so
FUNCTION = f"""
CREATE OR REPLACE FUNCTION toolhub_expect(held boolean, expected text) RETURNS void LANGUAGE plpgsql AS $body$ BEGIN
    IF held IS NOT TRUE THEN
        RAISE EXCEPTION '%', expected USING ERRCODE = '{STATE}';
    END IF;
END $body$"""


class UnmetExpectation(DatabaseError):
    """What was expected does not hold, and nothing of the transaction was done. ``expected``: as the statement called it."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        super().__init__(expected)


def find_unmet(error: DatabaseError) -> UnmetExpectation | None:
    """What Django's error says of an expectation; None where it is of something else."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) != STATE:
        return None
    return UnmetExpectation(cause.diag.message_primary or "")  # type: ignore[union-attr]  # of psycopg, by its state
