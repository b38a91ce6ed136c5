"""Columns: whether those of a fact say what its text says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from evidence.verify.facts import leaf_columns
from kernel.ids import encode

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from evidence.models import Fact


class FactRow(NamedTuple):
    """A fact as the walk reads it: the columns in the order of :data:`COLUMNS`."""

    id: UUID
    tenant_id: UUID
    kind: str
    subject: str
    invocation_id: UUID | None
    occurred_at: datetime
    actor_kind: str
    actor_id: str
    tool: str
    outcome: str
    reason: str
    trace_id: str
    leaf: bytes
    leaf_hash: bytes


COLUMNS = FactRow._fields
NAMES = {
    "at": "occurred_at",
    "tenant": "tenant_id",
    "invocation": "invocation_id",
    "trace": "trace_id",
}  # where they differ


def as_leaf(row: FactRow | Fact) -> dict[str, Any]:
    """The columns of a fact as its leaf would have them."""
    return {
        "id": encode("fct", row.id),
        "kind": row.kind,
        "at": row.occurred_at.isoformat(timespec="microseconds"),
        "tenant": encode("ten", row.tenant_id),
        "subject": row.subject,
        "actor": {"kind": row.actor_kind, "id": row.actor_id},
        "invocation": encode("inv", row.invocation_id) if row.invocation_id else "",
        "tool": row.tool,
        "outcome": row.outcome,
        "reason": row.reason,
        "trace": row.trace_id,
    }


def columns_that_differ(row: FactRow) -> list[str]:
    """Names of columns; all of them when the text is no leaf."""
    try:
        said, kept = leaf_columns(json.loads(row.leaf)), leaf_columns(as_leaf(row))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return list(COLUMNS)
    return [NAMES.get(name, name) for name in kept if kept[name] != said[name]]
