"""Run protocol: what is sent to a hub to have a question taken to its answer, and how its run is followed.

Like :mod:`unitools.hub.protocol` without any input or output. A run belongs to the hub: it goes on whatever becomes of its caller, and
the same key finds it again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.hub.errors import NotUnderstood, StillRunning
from unitools.hub.protocol import (
    API,
    CallSpec,
    HubRequest,
    Pause,
    RetryLimits,
    Step,
    follow_events,
    read_retry_after,
    send_request,
)
from unitools.hub.run_results import RunAnswer, read_run, read_run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from unitools.hub.results import Event

RUNS = f"{API}/runs"
_RUN_ID = re.compile(r"run_[0-9A-Za-z]{1,64}")


def run_model(
    call: CallSpec, patience: RetryLimits, *, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, RunAnswer]:
    """Begin a run, and follow it to its end."""
    patience = patience.begin()
    send = HubRequest("POST", RUNS, dict(call.body), call.all_headers())
    envelope, reply = yield from send_request(send, patience, takes_problem=True)
    if reply.status == 200 and on_event is None:
        return read_run(envelope, replayed=reply.headers.get("idempotency-replayed") == "true")
    run_id = read_run_id(envelope)
    if not _RUN_ID.fullmatch(run_id):
        raise NotUnderstood("The hub has answered a run without its id.", status=reply.status)
    return (yield from _follow_run(run_id, patience, on_event))


def wait_for_run(
    run_id: str, patience: RetryLimits, *, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, RunAnswer]:
    return (yield from _follow_run(_check_id(run_id), patience.begin(), on_event))


def _follow_run(
    run_id: str, patience: RetryLimits, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, RunAnswer]:
    """To its end by events, or by asking at intervals where they cannot be had; then what it came to."""
    yield from follow_events(f"{RUNS}/{run_id}/events", patience, on_event)
    while True:
        send = HubRequest("GET", f"{RUNS}/{run_id}")
        envelope, reply = yield from send_request(send, patience, takes_problem=True)
        if reply.status != 202:
            return read_run(envelope)
        pause = read_retry_after(reply)
        if patience.left_s <= pause:
            state = "held" if (envelope.get("data") or {}).get("waits_for_a_person") else "running"
            message = f"The run {run_id} has not ended in the time given to it; it goes on ({state})."
            raise StillRunning(message, call_id=run_id, state=state)
        yield Pause(pause)


def cancel_run(run_id: str, patience: RetryLimits) -> Generator[Step, Any, str]:
    """The state in which the run is now."""
    send = HubRequest("DELETE", f"{RUNS}/{_check_id(run_id)}")
    envelope, _ = yield from send_request(send, patience.begin(), takes_problem=True)
    return str((envelope.get("data") or {}).get("state") or "")


def _check_id(run_id: str) -> str:
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError("The id of a run begins with run_.")
    return run_id
