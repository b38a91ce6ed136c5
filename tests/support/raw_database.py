"""The raw database: how does a test write past the walls, as one with all rights over the database could?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection, models

from evidence.append_only import triggers_for
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, LogKey, Pending, Seal, Tile
from invocations.evidence_pairs.constraints import TRIGGERS

if TYPE_CHECKING:
    import random

KEPT = (Fact, Seal, Pending, Tile, Checkpoint, Log, LogKey)


def take_down_triggers() -> None:
    """Until the transaction of the test is rolled back."""
    triggers = triggers_for(connection.vendor) + (TRIGGERS if connection.vendor == "postgresql" else [])
    for each in triggers:
        sql(f"DROP TRIGGER IF EXISTS {each.name}" + (f" ON {each.table}" if connection.vendor == "postgresql" else ""))


def sql(statement: str, *values: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, [_stored(each) for each in values])
        return int(cursor.rowcount)


def _stored(value: Any) -> Any:
    return models.UUIDField().get_db_prep_value(value, connection) if isinstance(value, UUID) else value


def columns(model: Any) -> list[str]:
    return [field.column for field in model._meta.concrete_fields]


def copy_of_everything() -> dict[str, list[tuple[Any, ...]]]:
    """All rows, as a backup has them."""
    found = {}
    for model in KEPT:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(columns(model))} FROM {model._meta.db_table}")
            found[model._meta.db_table] = cursor.fetchall()
    return found


def put_back(copy: dict[str, list[tuple[Any, ...]]], *, of: UUID | None = None) -> None:
    """The rows of a copy in place of those that are there; ``of`` one tenant, what is its log's."""
    tenant = _stored(of)
    for model in KEPT if of is None else (Fact, Seal, Pending, Tile, Checkpoint, Log):
        table, names = model._meta.db_table, columns(model)
        sql(f"DELETE FROM {table}" + ("" if of is None else " WHERE tenant_id = %s"), *([] if of is None else [tenant]))
        marks, at = ", ".join(["%s"] * len(names)), None if of is None else names.index("tenant_id")
        rows = [row for row in copy[table] if at is None or row[at] == tenant]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


@dataclass
class World:
    """Two tenants with logs, facts that wait, and copies of how all of it was before."""

    by: random.Random
    tenants: tuple[UUID, UUID]
    before: list[dict[str, list[tuple[Any, ...]]]] = field(default_factory=list)

    def one(self) -> UUID:
        return self.by.choice(self.tenants)

    def seal(self, tenant_id: UUID | None = None) -> Seal:
        rows = Seal.objects.filter(tenant_id=tenant_id or self.one())
        found: Seal = rows.order_by("leaf_index")[self.by.randrange(rows.count())]
        return found

    def tile(self) -> Tile:
        return self.by.choice(list(Tile.objects.filter(tenant_id__in=[*self.tenants, GLOBAL_LOG])))

    def checkpoint(self, *, whole: bool = False) -> Checkpoint:
        rows = Checkpoint.objects.all() if whole else Checkpoint.objects.filter(tenant_id__in=self.tenants)
        return self.by.choice(list(rows))

    def log(self) -> Log:
        return self.by.choice(list(Log.objects.all()))
