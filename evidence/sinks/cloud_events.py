"""CloudEvents: what a fact looks like as a CloudEvents 1.0 event.

The envelope is the standard's; ``data`` holds the leaf itself, with what is needed to find it in the log and to hash it again: the
leaf is RFC 8785 JSON, so its canonical form is what was hashed. Leaves hold digests, ids and codes, never values of a call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings

from evidence.kinds import Kind
from kernel.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

MEDIA_TYPE = "application/cloudevents+json"
BATCH_MEDIA_TYPE = "application/cloudevents-batch+json"
PREFIX = "toolhub."

# What the sources call Envelope<Tool*Event>. A dry run begins and ends as a call does; `factkind` tells them apart.
TYPES: dict[str, str] = {
    Kind.TOOL_REGISTERED: "ToolRegisteredEvent",
    Kind.TOOL_REVIEWED: "ToolReviewedEvent",
    Kind.TOOL_ENABLED: "ToolEnabledEvent",
    Kind.TOOL_PAUSED: "ToolPausedEvent",
    Kind.TOOL_DEPRECATED: "ToolDeprecatedEvent",
    Kind.TOOL_SHARED: "ToolSharedEvent",
    Kind.TOOL_UNSHARED: "ToolUnsharedEvent",
    Kind.INVOCATION_BEGAN: "ToolInvokeBeginEvent",
    Kind.INVOCATION_ENDED: "ToolInvokeEndEvent",
    Kind.DRY_RUN_BEGAN: "ToolInvokeBeginEvent",
    Kind.DRY_RUN_ENDED: "ToolInvokeEndEvent",
}
OTHER = "FactEvent"  # every other kind


def build_event(*, tenant_id: UUID, index: int, leaf: dict[str, Any], leaf_hash: bytes) -> dict[str, Any]:
    """The event in the JSON format of CloudEvents. ``sequence`` and ``partitionkey`` are documented extensions of the standard."""
    tenant = encode("ten", tenant_id)
    event = {
        "specversion": "1.0",
        "id": leaf["id"],
        "source": f"{settings.TOOLHUB_PUBLIC_URL}/evidence/{tenant}",
        "type": PREFIX + TYPES.get(leaf["kind"], OTHER),
        "subject": leaf["subject"],
        "time": leaf["at"],
        "datacontenttype": "application/json",
        "sequence": f"{index:020d}",  # sorts as text as the log is ordered
        "partitionkey": tenant,
        "factkind": leaf["kind"],
        "data": {"leaf": leaf, "leaf_index": index, "leaf_hash": "sha256:" + leaf_hash.hex()},
    }
    if leaf.get("trace"):
        event["traceid"] = leaf["trace"]
    return event


def encode_event(event: dict[str, Any]) -> bytes:
    """As it is sent: one line."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
