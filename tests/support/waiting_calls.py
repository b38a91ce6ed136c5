"""Waiting calls: how does a test have calls that wait for a worker?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from invocations.models import Invocation, State
from kernel.ids import new_id
from tests.support.begin_end_pairs import keep_calls

if TYPE_CHECKING:
    from access.models import Agent


def waiting(agent: Agent, *, tool: str = "sample.tools.echo", count: int = 1, **more: Any) -> list[Invocation]:
    """Calls that wait for a worker, the first the longest."""
    now = datetime.now(UTC)
    rows = [
        Invocation(
            id=new_id(),
            tenant_id=agent.tenant_id,
            agent=agent,
            tool=tool,
            state=State.QUEUED,
            request_id="waits",
            arguments_fingerprint="x",
            created_at=now,
            queue_deadline_at=now + timedelta(hours=1),
            **more,
        )
        for _ in range(count)
    ]
    return keep_calls(*rows)
