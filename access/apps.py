"""Access app: what is registered when it is loaded."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models.signals import post_migrate

NEEDED_TABLES = {"access_tenant", "evidence_fact", "evidence_pending", "guardian_groupobjectpermission"}


def sync_role_permissions(*, using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """After each migration: roles of tenants that are older than a permission get it."""
    from access.members.services import sync_roles  # noqa: PLC0415  models load only after the apps

    if using == DEFAULT_DB_ALIAS and set(connections[using].introspection.table_names()) >= NEEDED_TABLES:
        sync_roles()


class AccessConfig(AppConfig):
    name = "access"

    def ready(self) -> None:
        import access.agents.services  # noqa: PLC0415  tells the search of facts the names of agents; models load only after the apps
        import access.consents.erasure  # noqa: PLC0415  says what is kept of persons
        import access.server_accounts.erasure  # noqa: PLC0415  the same
        import access.sign_in.facts  # noqa: F401, PLC0415  hears of changes that django-allauth makes

        post_migrate.connect(sync_role_permissions, sender=self, dispatch_uid="sync_roles")
