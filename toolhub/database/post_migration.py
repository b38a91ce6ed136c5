"""Post-migration: what is done after each migration, when every table exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connections
from django.db.models.signals import post_migrate
from django.dispatch import receiver

from evidence.append_only import keep_evidence
from invocations.evidence_pairs.constraints import install_pair_triggers
from invocations.unfinished_calls.triggers import keep_unfinished_calls
from registry.discovery.search import install_search_triggers
from toolhub.database.hub_role import grant_rights
from toolhub.database.row_level_security import install_policies

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


# Of our applications with tables the last one; `toolhub` has none, and gets no signal of its own.
@receiver(post_migrate, sender=apps.get_app_config("invocations"))
def after_migration(*, using: str, **_: Any) -> None:
    connection: BaseDatabaseWrapper = connections[using]
    keep_evidence(connection)
    install_pair_triggers(connection)
    install_search_triggers(connection)
    keep_unfinished_calls(connection)
    # Rights come last: no table can be reached before its policy stands.
    if connection.vendor == "postgresql" and install_policies(connection):
        grant_rights(connection)
