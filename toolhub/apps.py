from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate

from evidence.append_only import keep_evidence
from toolhub.hub_role import give_rights
from toolhub.walls import raise_walls


def after_migration(*, using: str, **_: Any) -> None:
    """All migrations have run by now: every table exists."""
    keep_evidence(connections[using])
    # Rights come last: no table can be reached before its policy stands.
    if connections[using].vendor == "postgresql" and raise_walls(connections[using]):
        give_rights(connections[using])


class ToolhubConfig(AppConfig):
    name = "toolhub"

    def ready(self) -> None:
        import toolhub.startup  # noqa: F401, PLC0415  registers its check; models load only after the apps

        # Of our applications with tables the last one; this one has none, and gets no signal of its own.
        post_migrate.connect(after_migration, sender=apps.get_app_config("invocations"))
