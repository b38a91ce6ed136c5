"""What is done after each migration, when every table exists?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connections
from django.db.models.signals import post_migrate
from django.dispatch import receiver

from evidence.append_only import keep_evidence
from invocations.pairs import hold_pairs
from registry.searching import keep_words
from toolhub.hub_role import give_rights
from toolhub.walls import raise_walls

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


# Of our applications with tables the last one; `toolhub` has none, and gets no signal of its own.
@receiver(post_migrate, sender=apps.get_app_config("invocations"))
def after_migration(*, using: str, **_: Any) -> None:
    connection: BaseDatabaseWrapper = connections[using]
    keep_evidence(connection)
    hold_pairs(connection)
    keep_words(connection)
    # Rights come last: no table can be reached before its policy stands.
    if connection.vendor == "postgresql" and raise_walls(connection):
        give_rights(connection)
