"""Types of stored values: what a database that lets any column hold any type has in which.

PostgreSQL has the type of the column and nothing else. SQLite is asked, of all rows of a piece in one statement a table.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from evidence.models import Checkpoint, Fact, Log, LogKey, Pending, Seal, Snapshot, Tile
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from django.db import models

_STORED_AS = {
    "BinaryField": "blob",
    "BigIntegerField": "integer",
    "BigAutoField": "integer",
    "PositiveIntegerField": "integer",
    "SmallIntegerField": "integer",
    "CharField": "text",
    "TextField": "text",
    "DateTimeField": "text",
    "UUIDField": "text",
}
_HEX = "*[^0-9a-f]*"
_OF_FACTS = """
    SELECT seal.leaf_index, {wrong} AS wrong FROM evidence_seal AS seal JOIN evidence_fact AS it ON it.id = seal.fact_id
    WHERE seal.tenant_id = %s AND seal.leaf_index >= %s AND seal.leaf_index < %s AND wrong <> ''
"""
_OF_CHECKPOINTS = """
    SELECT it.size, {wrong} AS wrong FROM evidence_checkpoint AS it
    WHERE it.tenant_id = %s AND it.size > %s AND it.size <= %s AND wrong <> ''
"""
_OF_SEALS = """
    SELECT it.leaf_index, {wrong} AS wrong FROM evidence_seal AS it
    WHERE it.tenant_id = %s AND it.leaf_index >= %s AND it.leaf_index < %s AND wrong <> ''
"""
_OF_TILES = """
    SELECT it.n, {wrong} AS wrong FROM evidence_tile AS it
    WHERE it.tenant_id = %s AND it.level = %s AND it.n >= %s AND it.n <= %s AND wrong <> ''
"""
_OF_VALUES = """
    SELECT it.id, {wrong} AS wrong FROM evidence_snapshot AS it WHERE it.tenant_id = %s AND it.id IN ({marks}) AND wrong <> ''
"""
_OF_LOG = "SELECT it.tenant_id, {wrong} AS wrong FROM evidence_log AS it WHERE it.tenant_id = %s AND wrong <> ''"
_OF_KEYS = "SELECT it.name, {wrong} AS wrong FROM evidence_logkey AS it WHERE wrong <> '' ORDER BY 1"
_OF_PENDING = "SELECT it.fact_id, {wrong} AS wrong FROM evidence_pending AS it WHERE wrong <> '' ORDER BY 1 LIMIT 100"


@cache
def _wrong(model: type[models.Model]) -> str:
    """In SQL: the names of the columns of ``it`` whose value has another type than they have, or is no id in its one form."""
    names = []
    for field in model._meta.concrete_fields:
        kind, column = _kind(field), f'it."{field.column}"'
        right = f"typeof({column}) = '{_STORED_AS[kind]}'"
        if kind == "UUIDField":  # another form of the same id is found by nobody who looks for it
            right += f" AND length({column}) = 32 AND {column} NOT GLOB '{_HEX}'"
        if field.null:
            right = f"{column} IS NULL OR {right}"
        names.append(f"CASE WHEN {right} THEN '' ELSE '{field.column}, ' END")
    return f"({' || '.join(names)})"


def _kind(field: Any) -> str:
    return str((field.target_field if field.is_relation else field).get_internal_type())


def mistyped_facts(tenant_id: UUID, start: int, stop: int) -> Mapping[int, str]:
    """By leaf: the columns of the fact that hold another type."""
    return _by_place(_OF_FACTS, Fact, tenant_id.hex, start, stop)


def mistyped_checkpoints(tenant_id: UUID, start: int, stop: int) -> Mapping[int, str]:
    """By size, above ``start`` and up to ``stop``."""
    return _by_place(_OF_CHECKPOINTS, Checkpoint, tenant_id.hex, start, stop)


def of_seals(tenant_id: UUID, start: int, stop: int) -> Mapping[int, str]:
    """By leaf."""
    return _by_place(_OF_SEALS, Seal, tenant_id.hex, start, stop)


def of_tiles(tenant_id: UUID, level: int, first: int, last: int) -> Mapping[int, str]:
    """By number within the level."""
    return _by_place(_OF_TILES, Tile, tenant_id.hex, level, first, last)


def of_values(tenant_id: UUID, ids: Collection[UUID]) -> Mapping[str, str]:
    """By id as it is written: of those stored values that are there."""
    marks = ", ".join(["%s"] * len(ids))
    found = _asked(_OF_VALUES.replace("{marks}", marks), Snapshot, [tenant_id.hex, *(id.hex for id in ids)])
    by_hex = {id.hex: encode("snp", id) for id in ids}
    return {by_hex[id]: wrong for id, wrong in found.items()}


def of_log(tenant_id: UUID) -> str:
    """The columns of the row that says how far the log has grown."""
    return ", ".join(_asked(_OF_LOG, Log, [tenant_id.hex]).values())


def of_rows_of_the_hub() -> list[str]:
    """Of the public keys, and of what waits to be sealed: each row with its columns."""
    found = {f"key {name}": wrong for name, wrong in _asked(_OF_KEYS, LogKey, []).items()}
    found |= {f"pending {id}": wrong for id, wrong in _asked(_OF_PENDING, Pending, []).items()}
    return [f"{row}: {wrong}"[:200] for row, wrong in found.items()]


def _by_place(statement: str, model: type[models.Model], *values: Any) -> Mapping[int, str]:
    return {int(place): wrong for place, wrong in _asked(statement, model, values).items()}


def _asked(statement: str, model: type[models.Model], values: Sequence[Any]) -> Mapping[Any, str]:
    if connection.vendor != "sqlite":
        return {}
    with connection.cursor() as cursor:
        cursor.execute(statement.format(wrong=_wrong(model)), values)
        return {place: wrong.removesuffix(", ") for place, wrong in cursor.fetchall()}
