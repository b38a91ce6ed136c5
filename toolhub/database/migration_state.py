"""Migration state: which migrations of this code a database has not applied."""

from __future__ import annotations

from functools import cache

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


@cache
def list_needed_migrations() -> frozenset[tuple[str, str]]:
    """The last of each application, and all steps that one migration stands for: a database that has some of them is too old for it,
    and Django's plan for such a database may be empty."""
    loader = MigrationLoader(None)
    replaced = (step for migration in loader.replacements.values() for step in migration.replaces)
    return frozenset({*loader.graph.leaf_nodes(), *replaced})


def find_missing_migrations() -> frozenset[tuple[str, str]]:
    """Of those that are needed; empty: the database is up to date."""
    return list_needed_migrations() - MigrationRecorder(connection).applied_migrations().keys()
