"""Replay outbox: how workers learn that a replay waits.

As with calls: the row is its own outbox, a message only says that there is something to do, and every sweeper rings again for what
nobody took, and for what a worker that died has left.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from invocations.queue.outbox import notify_replay_worker
from invocations.replays.models import Replay, ReplayState
from kernel.database.connections import database_now

NOTIFY_AGAIN_AFTER = timedelta(seconds=10)


def build_waiting_filter() -> Q:
    """What a worker may take: what waits, and what one that died has left."""
    return Q(state=ReplayState.QUEUED) | Q(state=ReplayState.RUNNING, lease_until__lte=database_now())


def relay_waiting_replays() -> int:
    """Ring for what has waited for a while; once, since whoever hears it rings for the rest."""
    due = Replay.objects.filter(build_waiting_filter(), notified_at__lte=database_now() - NOTIFY_AGAIN_AFTER)
    count = due.update(notified_at=database_now())
    if count:
        notify_replay_worker()
    return count
