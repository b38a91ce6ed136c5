"""How do workers learn that a replay waits?

As with calls: the row is its own outbox, a message only says that there is something to do, and every sweeper rings again for what
nobody took, and for what a worker that died has left.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import current_app
from django.db.models import Q

from invocations.queue import BROKER_ERRORS
from invocations.replaying.models import Replay, ReplayState
from toolhub.kernel.db import database_now
from toolhub.kernel.names import QUEUES, RUN_REPLAYS

log = logging.getLogger("toolhub.replays")
RING_AGAIN_AFTER = timedelta(seconds=10)


def ring() -> bool:
    """Tell a worker. False when the broker does not answer; then it is rung for again."""
    try:
        current_app.send_task(RUN_REPLAYS, queue=QUEUES["long"], retry=False, ignore_result=True, expires=None)
    except BROKER_ERRORS as error:
        log.warning("The broker does not answer, replays wait to be rung for again: %s", error)
        return False
    return True


def waiting() -> Q:
    """What a worker may take: what waits, and what one that died has left."""
    return Q(state=ReplayState.QUEUED) | Q(state=ReplayState.RUNNING, lease_until__lte=database_now())


def ring_for_replays() -> int:
    """Ring for what has waited for a while; once, since whoever hears it rings for the rest."""
    due = Replay.objects.filter(waiting(), rung_at__lte=database_now() - RING_AGAIN_AFTER)
    count = due.update(rung_at=database_now())
    if count:
        ring()
    return count
