"""Revealed values: what somebody sees of a call once they have given a reason: what it was given and what it answered, line by line.

Each is a table of all there is, in the order of the schema, with what is personal in it masked; as it was stored it can be unfolded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from access.redaction import masked_view
from evidence.models import Snapshot, SnapshotKind
from invocations.approvals.argument_tables import ArgumentTable, build_argument_table

if TYPE_CHECKING:
    from registry.models import ToolVersion


@dataclass(frozen=True, slots=True)
class RevealedValue:
    """``table``: None for what has no lines; ``message``: of what went wrong, in its own words."""

    snapshot: Snapshot
    value: Any
    table: ArgumentTable | None = None
    message: str = ""


def present_value(snapshot: Snapshot, value: Any, version: ToolVersion | None) -> RevealedValue:
    manifest = version.view if version else None
    said = value if isinstance(value, dict) else {}
    match snapshot.kind:
        case SnapshotKind.INPUT:
            schema = manifest.input_schema if manifest else None
            table = build_argument_table(masked_view(said.get("arguments"), schema), schema)
            return RevealedValue(snapshot, value, table)
        case SnapshotKind.OUTPUT:
            schema = manifest.output_schema if manifest else None
            table = build_argument_table(masked_view(said.get("data"), schema), schema)
            return RevealedValue(snapshot, value, table if table.given else None)
        case SnapshotKind.ERROR:
            message = str(masked_view(said.get("message") or said.get("detail") or ""))
            return RevealedValue(snapshot, value, message=message)
        case _:
            return RevealedValue(snapshot, value)
