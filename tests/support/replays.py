"""Replays: what do tests of replays have in common?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.replays import services
from invocations.replays.worker import run_next_batch

if TYPE_CHECKING:
    from invocations.models import Invocation
    from invocations.replays.models import Replay
    from kernel.principal import Principal

WHY = "the customer asks what happened"


def replayed_tool(name: str, **changes: Any) -> dict[str, Any]:
    """For ``enable(**…)``: a function of sample.replayed."""
    return {"name": name, "implementation": {"module": "sample.replayed", "entry": name}} | changes


def work_through() -> None:
    while run_next_batch():
        pass


def replay(call: Invocation, *, by: Principal, **more: Any) -> Replay:
    """Ask, and have a worker do it."""
    row = services.replay_call(invocation_id=call.pk, reason=WHY, by=by, **more)
    work_through()
    row.refresh_from_db()
    return row
