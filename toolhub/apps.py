from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate

from toolhub.walls import raise_walls


def after_migration(*, using: str, **_: Any) -> None:
    """The last application to be migrated: every table exists now."""
    if connections[using].vendor == "postgresql":
        raise_walls(connections[using])


class ToolhubConfig(AppConfig):
    name = "toolhub"

    def ready(self) -> None:
        import toolhub.startup  # noqa: F401, PLC0415  registers its check; models load only after the apps

        post_migrate.connect(after_migration, sender=self)
