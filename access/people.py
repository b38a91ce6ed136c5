"""Which person stands behind an agent?

Who made an agent, or holds a key of it that still works, could approve through it what they asked for themselves. Decisions
ask here before they count somebody as another person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from access.models import ApiKey
from evidence.kinds import Kind
from evidence.models import Fact
from toolhub.kernel.ids import encode

if TYPE_CHECKING:
    from uuid import UUID


def controls(user_wire_id: str, agent_id: UUID) -> bool:
    """Whether the person ``usr_…`` created this agent, or a key of it that still works."""
    live = ApiKey.objects.filter(
        agent_id=agent_id, created_by=user_wire_id, revoked_at=None, expires_at__gt=timezone.now()
    )
    made = Fact.objects.filter(kind=Kind.AGENT_CREATED, subject=encode("agt", agent_id), actor_id=user_wire_id)
    return live.exists() or made.exists()
