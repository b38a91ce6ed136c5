"""Which person stands behind an agent?

Who made an agent, or holds a key of it that still works, could approve through it what they asked for themselves. Decisions
ask here before they count somebody as another person. It makes no difference when the agent was made by another agent of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from access.models import ApiKey
from evidence.kinds import Kind
from evidence.models import Fact
from toolhub.kernel.ids import decode, encode

if TYPE_CHECKING:
    from uuid import UUID


def _makers(agent_id: UUID) -> set[str]:
    """Wire ids of who created this agent, and keys of it that still work."""
    live = ApiKey.objects.filter(agent_id=agent_id, revoked_at=None, expires_at__gt=timezone.now())
    made = Fact.objects.filter(kind=Kind.AGENT_CREATED, subject=encode("agt", agent_id))
    return {*live.values_list("created_by", flat=True), *made.values_list("actor_id", flat=True)}


def controls(user_wire_id: str, agent_id: UUID) -> bool:
    """Whether the person ``usr_…`` created this agent, or a key of it that still works, or an agent that did."""
    pending, seen = {agent_id}, set[str]()
    while pending:
        makers = set[str]().union(*(_makers(each) for each in pending)) - seen
        if user_wire_id in makers:
            return True
        seen |= makers
        pending = {decode("agt", maker) for maker in makers if maker.startswith("agt_")}
    return False
