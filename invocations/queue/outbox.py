"""Outbox: how workers learn that a call waits.

The row of a queued call is its own outbox: the transaction that queues it also says that a message is due (``notified_at``). The
message is sent after the commit, holds an id and nothing else, and may arrive twice or never: who hears it takes the call whose
turn it is (:mod:`invocations.queue.claims`), and for a call that nobody took in time any sweeper sends another.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.db import connection, transaction
from kombu.exceptions import OperationalError as BrokerError

from invocations.models import Invocation, State
from invocations.queue.notify import CALLS, REPLAYS
from invocations.queue.notify.local_workers import LocalWorkers, local_workers
from invocations.queue.notify.notifier import get_notifier
from invocations.unfinished_calls.models import build_unfinished_filter
from kernel.database.connections import database_now
from kernel.fault_injection import inject_fault
from kernel.names import QUEUES, RUN_INVOCATION, RUN_REPLAYS
from kernel.outages import Outage
from kernel.singleton import Once

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from celery import Celery

log = logging.getLogger("toolhub.queue")
# What kombu's transports raise when the broker does not answer, mapped or not.
BROKER_ERRORS = (BrokerError, ConnectionError, TimeoutError, OSError)
LOST_MESSAGE_AFTER = timedelta(seconds=2)
outage = Outage(log, gone="The broker does not answer; PostgreSQL wakes the workers", back="The broker answers again")


class WakeUpSender:
    """Sends the same message of Celery's again and again, over a channel that is kept.

    ``send_task`` finds out for each message anew what it says, where it goes and over which connection: ADR 0036.
    """

    def __init__(self, app: Celery, task: str) -> None:
        self._app = app
        self._made = app.amqp.as_task_v2("", task, ignore_result=True)

    @cached_property
    def _channel(self) -> Any:
        return self._app.connection_for_write().default_channel

    def send(self, queue: str, **kwargs: str) -> None:
        """Raises one of ``BROKER_ERRORS`` when nobody takes the message."""
        channel, id = self._channel, str(uuid4())
        message = channel.prepare_message(
            json.dumps([[], kwargs, self._made.body[2]]),
            content_type="application/json",
            content_encoding="utf-8",
            headers=self._made.headers | {"id": id, "root_id": id},
            properties={"correlation_id": id},
        )
        broker = channel.connection
        try:
            channel.basic_publish(message, "", queue)
        except (*broker.connection_errors, *broker.channel_errors) as error:
            raise BrokerError(str(error)) from error


@Once
def get_wake_up_sender() -> WakeUpSender | LocalWorkers:
    return local_workers if settings.TOOLHUB_EMBEDDED else WakeUpSender(current_app, RUN_INVOCATION)


def send_wake_up(invocation_id: UUID, work_class: str) -> None:
    """Send one message. Raises one of ``BROKER_ERRORS`` when nobody takes the message."""
    get_wake_up_sender().send(QUEUES[work_class], invocation_id=str(invocation_id))


def notify_workers(invocation: Invocation) -> bool:
    """Tell the workers of a call that was just queued, by the broker or, where there is none or it does not answer, by PostgreSQL
    itself. False when neither takes it; then a sweeper tells them later.
    """
    return _send(lambda: send_wake_up(invocation.pk, invocation.work_class)) or notify_by_postgresql(CALLS)


def notify_replay_worker() -> bool:
    """The same for replays."""
    send: Callable[[], object] = partial(
        current_app.send_task, RUN_REPLAYS, queue=QUEUES["long"], retry=False, ignore_result=True, expires=None
    )
    return _send(
        partial(local_workers.enqueue, REPLAYS) if settings.TOOLHUB_EMBEDDED else send
    ) or notify_by_postgresql(REPLAYS)


def has_broker() -> bool:
    """Whether anybody takes a message: Redis, or the one process that is all, for its own threads."""
    return settings.TOOLHUB_EMBEDDED or bool(settings.TOOLHUB_REDIS_URL)


def _send(send: Callable[[], object]) -> bool:
    if not has_broker() or outage.is_on():
        return False
    try:
        send()
    except BROKER_ERRORS as error:
        outage.begin(error)
        return False
    outage.end()
    return True


def notify_by_postgresql(what: str) -> bool:
    """Have PostgreSQL wake the workers. False where there is none, or it does not answer."""
    return connection.vendor == "postgresql" and get_notifier().notify(what)


def relay_due_messages(*, limit: int) -> int:
    """The relay: send the messages that are due since a while. Their calls were committed by a process that died before it sent
    them, or the broker has lost them, or all workers are busy.
    """
    with transaction.atomic():
        waits = {"state": State.QUEUED, "notified_at__lte": database_now() - LOST_MESSAGE_AFTER}
        due = Invocation.objects.select_for_update(skip_locked=True, of=("self",)).filter(
            build_unfinished_filter(**waits), **waits
        )
        found = list(due.order_by("notified_at").only("id", "work_class")[:limit])
        Invocation.objects.filter(pk__in=[each.pk for each in found]).update(notified_at=database_now())
        if found:
            inject_fault("relay.before_commit")
    if found:
        inject_fault("relay.committed")
    return sum(1 for each in found if notify_workers(each))
