"""Replay worker: what a worker does with a replay.

Claim it by compare-and-set, go through some calls, write down how far it has come, and let others have the thread: for what is left
another wake-up is sent. A worker that dies costs the piece that it was at. Nothing of the database is held while a tool runs.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F

from invocations.queue.outbox import notify_replay_worker
from invocations.replays.batches import PIECES, ReplayBatch
from invocations.replays.models import Replay, ReplayState
from invocations.replays.outbox import build_waiting_filter
from invocations.replays.services import record_replay_end
from invocations.sandbox.factory import current_sandbox
from kernel.database.connections import database_time
from kernel.fault_injection import inject_fault
from kernel.principal import Principal

if TYPE_CHECKING:
    from uuid import UUID

log = logging.getLogger("toolhub.replays")
PIECE_S = 5.0  # then somebody else may have the thread
LEASE = timedelta(minutes=20)  # one call may be run three times, each up to five minutes
MAX_CRASHES = 3  # in a row


_turn = threading.Lock()  # of this process: a worker's other threads are for calls


def run_next_batch() -> bool:
    """A piece of the replay that has waited longest. False when none waits, or another thread is at one."""
    if not _turn.acquire(blocking=False):
        return False
    try:
        worked = _work_on_next()
    finally:
        _turn.release()
    if worked:
        notify_if_waiting()
    return worked


def _work_on_next() -> bool:
    if current_sandbox().closing or (row := claim_replay()) is None:
        return False
    try:
        _work_on(row)
    except (OperationalError, InterfaceError) as error:  # its lease runs out, and it is gone on with
        log.warning("A piece of %s was not finished and is tried again: %s", row.wire_id, error)
    except Exception as error:
        log.exception("%s failed", row.wire_id, exc_info=error)
        _end(row, ReplayState.FAILED)
    return True


def notify_if_waiting() -> None:
    if Replay.objects.filter(build_waiting_filter()).exists():
        notify_replay_worker()


def claim_replay() -> Replay | None:
    """The replay that has waited longest, now running under a lease; ``attempt`` is the fencing token."""
    row = Replay.objects.filter(build_waiting_filter()).order_by("notified_at").first()
    if row is None:
        return None
    died = row.state == ReplayState.RUNNING
    won = Replay.objects.filter(build_waiting_filter(), pk=row.pk, attempt=row.attempt).update(
        state=ReplayState.RUNNING,
        attempt=F("attempt") + 1,
        crashes=F("crashes") + int(died),
        lease_until=database_time() + LEASE,
        notified_at=database_time(),
    )
    if not won:
        return None
    return Replay.objects.select_related("invocation", "version__tool", "policy").get(pk=row.pk)


def _work_on(row: Replay) -> None:
    if row.crashes >= MAX_CRASHES:
        log.error("%s was given up: the workers that had it died %d times in a row", row.wire_id, row.crashes)
        _end(row, ReplayState.FAILED)
        return
    until = time.monotonic() + PIECE_S
    while True:
        if row.cancel_asked_at is not None:
            _end(row, ReplayState.CANCELLED)
            return
        piece = PIECES[row.what](row)
        if not save_batch(row, piece):
            return  # somebody else has it by now
        inject_fault("replay.committed")
        if piece.last:
            return
        if time.monotonic() >= until:
            break
    Replay.objects.filter(pk=row.pk, attempt=row.attempt, state=ReplayState.RUNNING).update(
        state=ReplayState.QUEUED, lease_until=None, notified_at=database_time()
    )


def save_batch(row: Replay, piece: ReplayBatch) -> bool:
    """How far it has come, with what the piece has found, in one transaction. False when the lease was lost."""
    row.done, row.total, row.after = row.done + piece.calls, piece.total, piece.after
    row.result, row.verdict = piece.result, piece.verdict
    changes: dict[str, Any] = {name: getattr(row, name) for name in ("done", "total", "after", "result", "verdict")}
    with transaction.atomic():
        if not _update(row, crashes=0, lease_until=database_time() + LEASE, **changes):
            return False
        piece.write()
        if piece.last:
            _end(row, ReplayState.ENDED)
        inject_fault("replay.before_commit")
    row.refresh_from_db(fields=["cancel_asked_at"])
    return True


def _update(row: Replay, **changes: Any) -> bool:
    mine = Replay.objects.filter(pk=row.pk, attempt=row.attempt, state=ReplayState.RUNNING)
    return mine.update(**changes) == 1


def _end(row: Replay, state: ReplayState) -> None:
    with transaction.atomic():
        if _update(row, state=state, finished_at=datetime.now(UTC), lease_until=None):
            row.state = state
            record_replay_end(row, actor=build_system_principal(row.tenant_id))


def build_system_principal(tenant_id: UUID) -> Principal:
    return Principal.system("replay", tenant_id=tenant_id)
