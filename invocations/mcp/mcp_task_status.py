"""MCP task status: what a call looks like as a task.

Both revisions have the same five words; what they say of a call that has ended differs, and so do the names of the times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.answer.envelope import build_call_object
from invocations.models import State
from invocations.run.live_output import read_live_output

if TYPE_CHECKING:
    from invocations.models import Invocation

POLL_MS = 1000
HELD_POLL_MS = 10_000  # people are slower than workers


def find_approval_url(invocation: Invocation) -> str:
    """The page where somebody decides on it; empty when it does not wait for a person."""
    return str(build_call_object(invocation).get("held", {}).get("url", "")) if invocation.state == State.HELD else ""


def choose_task_status(invocation: Invocation, *, modern: bool, asks_by_url: bool = False) -> str:
    """``failed`` is for what goes wrong with the protocol since 2026-07-28; before, for every answer that is an error."""
    if invocation.state == State.HELD and asks_by_url:
        return "input_required"
    if not invocation.is_final:
        return "working"
    if invocation.state == State.CANCELLED:
        return "cancelled"
    return "completed" if modern or invocation.state == State.SUCCEEDED else "failed"


def _message(invocation: Invocation) -> str:
    if url := find_approval_url(invocation):
        return f"Waits for a person, who decides at {url}."
    live = read_live_output(invocation) or {}
    return str((live.get("progress") or {}).get("message") or "")


def build_mcp_task(invocation: Invocation, *, modern: bool, asks_by_url: bool = False) -> dict[str, Any]:
    """The task as it is told of, without what came of it. It lives as long as its call: no time is promised."""
    last = invocation.finished_at or invocation.started_at or invocation.created_at
    poll = HELD_POLL_MS if invocation.state == State.HELD else POLL_MS
    task: dict[str, Any] = {
        "taskId": invocation.wire_id,
        "status": choose_task_status(invocation, modern=modern, asks_by_url=asks_by_url),
        "createdAt": invocation.created_at.isoformat(),
        "lastUpdatedAt": last.isoformat(),
        "ttlMs" if modern else "ttl": None,
        "pollIntervalMs" if modern else "pollInterval": poll,
    }
    return task | ({"statusMessage": message} if (message := _message(invocation)) else {})


def build_task_handle(invocation: Invocation, *, modern: bool) -> dict[str, Any]:
    """What is handed out in place of an answer."""
    task = build_mcp_task(invocation, modern=modern)
    return task | {"resultType": "task"} if modern else {"task": task}
