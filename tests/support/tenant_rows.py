"""Tenant rows: what is there of a tenant, as the database has it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from access.models import DisplaySettings, Tenant
from evidence.models import Anchor, LogKey, MasterKey
from invocations.models import SandboxHost, Unmapped
from kernel.ids import encode
from toolhub.database.row_level_security import list_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


def way_to_tenant(model: type[models.Model]) -> str:
    """The lookup that leads from a row to its tenant: ``tenant_id``, ``tool__tenant_id``, …"""
    if model is Tenant:
        return "pk"
    columns = {each.attname: each for each in model._meta.concrete_fields}
    if "tenant_id" in columns:
        return "tenant_id"
    for each in columns.values():
        parent: Any = each.related_model
        if isinstance(each, models.ForeignKey) and not each.null and parent in list_tables().values():
            return f"{each.name}__{way_to_tenant(parent)}"
    raise LookupError(f"{model} has no tenant and belongs to nothing that has one.")


def rows_of(tenant: Tenant | None = None) -> dict[str, list[dict[str, Any]]]:
    """Every row of a tenant, or of all; without when a key was last used."""
    found = {}
    for name, model in sorted(list_tables().items()):
        if tenant is not None and model in (SandboxHost, Unmapped, LogKey, MasterKey, Anchor, DisplaySettings):
            continue  # of no tenant
        rows: Any = model._default_manager.order_by("pk")
        if tenant is not None:
            rows = rows.filter(**{way_to_tenant(model): tenant.pk})
        found[name] = [
            {column: value for column, value in row.items() if column != "last_used_at"} for row in rows.values()
        ]
    return found


def ids_of(tenant: Tenant) -> Iterator[str]:
    """How a page or an answer would name a row of the tenant."""
    for rows in rows_of(tenant).values():
        for row in rows:
            key: UUID | int = row.get("id") or row.get("fact_id") or 0
            if not isinstance(key, int):
                yield str(key)
                yield encode("x", key).removeprefix("x_")
