"""Embedded mode: how one process does the work of all.

The embedded default: the web server, threads that run calls and all loops in one process, over one SQLite file. The code is the
production shape's; only who runs it differs: what Celery's messages do there, the acceptor's own process does here.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from access.models import Delivery
from evidence.models import Anchor, Erasure, ErasureState, EventSink, Pending, SinkState
from invocations.agent_runs.models import AgentRun, AgentRunState
from invocations.callbacks.models import CallbackDelivery
from invocations.chains.models import CHAIN_OPEN, Chain
from invocations.models import State, Tally
from invocations.queue.notify import CALLS, REPLAYS
from invocations.queue.notify.local_workers import local_workers
from invocations.replays.worker import run_next_batch
from invocations.run.execution import run_queued_calls
from invocations.sandbox.factory import current_sandbox, start_sandbox
from invocations.unfinished_calls.models import UnfinishedCall
from kernel.database.change_watch import LOOK_AGAIN_S, news
from kernel.database.connections import database_time
from registry.dependencies.states import IN_WORK
from registry.models import Dependencies
from toolhub.loops import ProcessRole, run_loops, select_loops

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


def worker_threads() -> AbstractContextManager[None]:
    """What runs calls and replays while the block does; it is left only when those that had begun have ended."""
    count = settings.TOOLHUB_WORKER_CONCURRENCY + settings.TOOLHUB_WORKER_SPARE
    return local_workers.running({CALLS: run_queued_calls, REPLAYS: run_next_batch}, threads=count)


def is_under_way() -> bool:
    """Whether time alone makes something due: leases and deadlines of calls, what is tried again, what is counted by the minute.

    Not what is due later than every loop looks again: a person may take a day to decide, and a server may be gone for as long.
    """
    soon = database_time() + timedelta(seconds=LOOK_AGAIN_S)
    return (
        UnfinishedCall.objects.exclude(state=State.HELD, overdue_at__gt=soon).exists()
        or Pending.objects.exists()
        or Tally.objects.exists()
        or Chain.objects.filter(state__in=CHAIN_OPEN).exists()
        or AgentRun.objects.filter(state=AgentRunState.RUNNING).exists()
        or Delivery.objects.filter(next_attempt_at__lte=soon).exists()
        or CallbackDelivery.objects.filter(next_attempt_at__lte=soon).exists()
        or EventSink.objects.filter(attempts__gt=0, next_attempt_at__lte=soon).exclude(state=SinkState.ENDED).exists()
        or Anchor.objects.filter(attempts__gt=0, next_attempt_at__lte=soon).exists()
        or Erasure.objects.exclude(state=ErasureState.DONE).exists()
        or Dependencies.objects.filter(state__in=IN_WORK).exists()
    )


def news_watch() -> AbstractContextManager[None]:
    """What lets the loops of an idle hub rest."""
    return news.watched(Path(settings.DATABASES["default"]["NAME"]), is_under_way)


@contextmanager
def run_all_parts() -> Iterator[None]:
    """Worker and the loops beside it. At the end the loops are told to stop, so that none begins anything without boxes, and the
    boxes go next, so that running calls end instead of being waited for.
    """
    with news_watch(), run_loops(*select_loops(ProcessRole.EMBEDDED)) as loops, worker_threads():
        start_sandbox()
        try:
            yield
        finally:
            loops.tell()
            current_sandbox().close()
