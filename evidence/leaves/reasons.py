"""Leaves that say nothing but why somebody did it."""

from __future__ import annotations

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, Written, leaf_data


@leaf_data(
    Kind.AGENT_DISABLED,
    Kind.AGENT_ENABLED,
    Kind.KEY_REVOKED,
    Kind.ISSUER_DISTRUSTED,
    Kind.INVOCATION_RESOLVED,
    Kind.CALLBACK_DISABLED,
    Kind.NOTIFICATION_ENDED,
    Kind.TOOL_SHARED,
    Kind.TOOL_UNSHARED,
)
class StatedReason(LeafData):
    """Why somebody did it."""

    reason: Written
