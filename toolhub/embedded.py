"""How does one process do the work of all?

The embedded default: the web server, a Celery worker on the in-memory broker and the sweeper as threads of one process,
over one SQLite file. The code is the production shape's; only who runs it differs.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from access import deliveries
from access.models import Delivery
from evidence.models import Anchor, Erasure, ErasureState, EventSink, Pending, SinkState
from invocations import sandbox_hosts, sweeper
from invocations.callbacks import sending
from invocations.callbacks.models import CallbackDelivery
from invocations.chains import driving
from invocations.chains.models import CHAIN_OPEN, Chain
from invocations.models import Invocation, Tally
from invocations.sandbox.current import current_sandbox, start_sandbox
from registry.dependencies import builder
from registry.dependencies.states import IN_WORK
from registry.models import Dependencies
from toolhub.celery import app
from toolhub.keeper import keeper_threads, loop_thread
from toolhub.kernel.news import news

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

log = logging.getLogger("toolhub.embedded")
READY_WITHIN_S = 30


@contextmanager
def worker_thread() -> Iterator[None]:
    """A Celery worker that runs while the block does; leaves it only when its tasks have ended."""
    controller = app.WorkController(
        pool="threads",
        concurrency=settings.TOOLHUB_WORKER_CONCURRENCY + settings.TOOLHUB_WORKER_SPARE,
        without_heartbeat=True,
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    thread = threading.Thread(target=controller.start, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        controller.stop(in_sighandler=False)
        thread.join(timeout=READY_WITHIN_S)


def sweeper_thread() -> AbstractContextManager[threading.Thread]:
    return loop_thread("sweeper", sweeper.run)


def sender_thread() -> AbstractContextManager[threading.Thread]:
    """What sends messages to people; apart from the sweeper, which waits for nobody."""
    return loop_thread("sender", deliveries.run)


def callback_thread() -> AbstractContextManager[threading.Thread]:
    """What tells the agents' servers of calls that have ended."""
    return loop_thread("callbacks", sending.run)


def chain_thread() -> AbstractContextManager[threading.Thread]:
    """What takes chains on whose turn was missed."""
    return loop_thread("chains", driving.run)


def builder_thread() -> AbstractContextManager[threading.Thread]:
    """What installs the dependencies of tools; it may be at one of them for minutes."""
    return loop_thread("builder", builder.run)


def reporter_thread() -> AbstractContextManager[threading.Thread]:
    """What writes down how the sandboxes are, for the console."""
    return loop_thread("reporter", sandbox_hosts.run)


def is_under_way() -> bool:
    """Whether time alone makes something due: leases and deadlines of calls, what is tried again, what is counted by the minute."""
    return (
        Invocation.objects.filter(finished_at=None).exists()
        or Pending.objects.exists()
        or Tally.objects.exists()
        or Chain.objects.filter(state__in=CHAIN_OPEN).exists()
        or Delivery.objects.filter(next_attempt_at__isnull=False).exists()
        or CallbackDelivery.objects.filter(next_attempt_at__isnull=False).exists()
        or EventSink.objects.filter(attempts__gt=0).exclude(state=SinkState.ENDED).exists()
        or Anchor.objects.filter(attempts__gt=0).exists()
        or Erasure.objects.exclude(state=ErasureState.DONE).exists()
        or Dependencies.objects.filter(state__in=IN_WORK).exists()
    )


def news_watch() -> AbstractContextManager[None]:
    """What lets the loops of an idle hub rest."""
    return news.watched(Path(settings.DATABASES["default"]["NAME"]), is_under_way)


@contextmanager
def all_parts() -> Iterator[None]:
    """Worker and the loops beside it; at the end the boxes go first, so that running calls end instead of being waited for."""
    with (
        news_watch(),
        sender_thread(),
        callback_thread(),
        chain_thread(),
        builder_thread(),
        reporter_thread(),
        keeper_threads(),
        sweeper_thread(),
        worker_thread(),
    ):
        start_sandbox()
        try:
            yield
        finally:
            current_sandbox().close()
