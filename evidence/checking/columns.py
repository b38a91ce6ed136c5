"""Do the columns of a fact say what its text says?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from toolhub.kernel.ids import encode

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class Row(NamedTuple):
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


COLUMNS = Row._fields
NAMED = {
    "kind": "kind",
    "subject": "subject",
    "tool": "tool",
    "outcome": "outcome",
    "reason": "reason",
    "trace_id": "trace",
}


def columns_that_differ(row: Row) -> list[str]:
    """Names of columns; all of them when the text is no leaf."""
    try:
        said: dict[str, Any] = json.loads(row.leaf)
        actor = said["actor"]
        found = [name for name, key in NAMED.items() if getattr(row, name) != said.get(key, "")]
        if encode("fct", row.id) != said["id"]:
            found.append("id")
        if encode("ten", row.tenant_id) != said["tenant"]:
            found.append("tenant_id")
        if (encode("inv", row.invocation_id) if row.invocation_id else None) != said.get("invocation"):
            found.append("invocation_id")
        if row.occurred_at.isoformat(timespec="microseconds") != said["at"]:
            found.append("occurred_at")
        if row.actor_kind != actor["kind"]:
            found.append("actor_kind")
        if row.actor_id != actor["id"]:
            found.append("actor_id")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return list(COLUMNS)
    return found
