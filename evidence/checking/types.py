"""Types of stored values: what a database that lets any column hold any type has in which.

PostgreSQL has the type of the column and nothing else. SQLite is asked, of all rows of a piece in one statement.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from evidence.models import Checkpoint, Fact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db import models

_STORED_AS = {
    "BinaryField": "blob",
    "BigIntegerField": "integer",
    "BigAutoField": "integer",
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


@cache
def _wrong(model: type[models.Model]) -> str:
    """In SQL: the names of the columns of ``it`` whose value has another type than they have, or is no id in its one form."""
    names = []
    for field in model._meta.concrete_fields:
        kind, column = field.get_internal_type(), f'it."{field.column}"'
        right = f"typeof({column}) = '{_STORED_AS[kind]}'"
        if kind == "UUIDField":  # another form of the same id is found by nobody who looks for it
            right += f" AND length({column}) = 32 AND {column} NOT GLOB '{_HEX}'"
        if field.null:
            right = f"{column} IS NULL OR {right}"
        names.append(f"CASE WHEN {right} THEN '' ELSE '{field.column}, ' END")
    return f"({' || '.join(names)})"


def of_facts(tenant_id: Any, start: int, stop: int) -> Mapping[int, str]:
    """By leaf: the columns of the fact that hold another type."""
    return _asked(_OF_FACTS, Fact, [tenant_id, start, stop])


def of_checkpoints(tenant_id: Any, start: int, stop: int) -> Mapping[int, str]:
    """By size, above ``start`` and up to ``stop``."""
    return _asked(_OF_CHECKPOINTS, Checkpoint, [tenant_id, start, stop])


def _asked(statement: str, model: type[models.Model], values: Sequence[Any]) -> Mapping[int, str]:
    if connection.vendor != "sqlite":
        return {}
    with connection.cursor() as cursor:
        cursor.execute(statement.format(wrong=_wrong(model)), [values[0].hex, *values[1:]])
        return {int(place): wrong.removesuffix(", ") for place, wrong in cursor.fetchall()}
