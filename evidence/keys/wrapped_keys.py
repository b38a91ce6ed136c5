"""Wrapped keys: the rows that hold something that a master key wraps.

Each names the key that wraps it, so that a rotation can find what is left and a start can say what a lost key would cost.
The key of a row is bound to its tenant. A guard test refuses a model with a wrapped key that is not listed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connection

if TYPE_CHECKING:
    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """``key_id`` and ``wrapped`` are the names of the columns; an empty key id means that the row holds nothing."""

    name: str
    model: str
    key_id: str
    wrapped: str

    def rows(self) -> QuerySet[Any]:
        manager: Any = apps.get_model(self.model)._base_manager
        found: QuerySet[Any] = manager.exclude(**{self.key_id: ""})
        return found


SEALED = (
    SealedColumn("tenant keys", "evidence.TenantKey", "key_id", "wrapped_key"),
    SealedColumn("snapshots", "evidence.Snapshot", "key_id", "wrapped_key"),
    SealedColumn("secrets", "registry.Secret", "key_id", "wrapped_key"),
    SealedColumn("files", "invocations.StoredFile", "key_id", "wrapped_key"),
    SealedColumn("tool files", "invocations.ToolFiles", "key_id", "wrapped_key"),
    SealedColumn("artifacts", "invocations.ArtifactContent", "key_id", "wrapped_key"),
    SealedColumn("callbacks", "invocations.CallbackSecret", "key_id", "wrapped_key"),
    SealedColumn("exports", "evidence.ExportJob", "key_id", "wrapped_key"),
    SealedColumn("event sinks", "evidence.SinkSecret", "key_id", "wrapped_key"),
    SealedColumn("account servers", "access.AccountServer", "key_id", "wrapped_key"),
    SealedColumn("notifications", "access.Notification", "secret_key_id", "secret"),
)


def wrapped_with() -> dict[str, set[str]]:
    """The names of the keys that are in use, by what they wrap. Empty for a database without tables."""
    tables = set(connection.introspection.table_names())
    return {
        each.name: set(each.rows().values_list(each.key_id, flat=True).distinct())
        for each in SEALED
        if apps.get_model(each.model)._meta.db_table in tables
    }


def anything_is_sealed() -> bool:
    tables = set(connection.introspection.table_names())
    return any(each.rows().exists() for each in SEALED if apps.get_model(each.model)._meta.db_table in tables)
