"""Cursor: the events that come next for a sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidence.kinds import Kind
from evidence.log.reader import iter_leaves
from evidence.models import Log, read_leaf
from evidence.sinks.cloud_events import build_event

if TYPE_CHECKING:
    from uuid import UUID

    from evidence.models import EventSink

LOOKED_AT = 1000  # leaves at a time: a sink of few kinds passes over the others


class LogGap(Exception):
    """A leaf is gone that the sink has not got."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in the order of the log, each with its index; ``cursor``: where to go on when all of them have arrived."""

    events: list[tuple[int, dict[str, Any]]]
    cursor: int


def load_log_size(tenant_id: UUID) -> int:
    """How many leaves the tenant's log has."""
    return Log.objects.filter(pk=tenant_id).values_list("size", flat=True).first() or 0


def next_events(sink: EventSink, *, start: int, most: int) -> EventBatch:
    """Up to ``most`` events that the sink wants, from the leaf ``start`` on."""
    cursor, found = start, []  # type: int, list[tuple[int, dict[str, Any]]]
    for index, raw, leaf_hash in iter_leaves(
        sink.tenant_id, start, min(load_log_size(sink.tenant_id), start + LOOKED_AT)
    ):
        if index != cursor or not raw:
            if cursor > start:
                break
            raise LogGap(f"The log has no leaf {cursor}: it was damaged. Verify it; nothing is sent past a gap.")
        leaf = read_leaf(raw)
        if not leaf:
            raise LogGap(f"The leaf {index} is none any more: it was changed. Verify the log; nothing is sent past it.")
        cursor = index + 1
        if wants_fact(sink, leaf):
            found.append(
                (index, build_event(tenant_id=sink.tenant_id, index=index, leaf=leaf, leaf_hash=bytes(leaf_hash)))
            )
            if len(found) == most:
                break
    return EventBatch(found, cursor)


def wants_fact(sink: EventSink, leaf: dict[str, Any]) -> bool:
    """A test event of a sink reaches it whatever it wants."""
    if leaf["kind"] == Kind.SINK_TESTED and leaf["subject"] == sink.wire_id:
        return True
    return not sink.kinds or leaf["kind"] in sink.kinds
