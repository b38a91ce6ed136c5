"""How do workers learn that a call waits?

The row of a queued call is its own outbox: the transaction that queues it also says that a message is due (``rung_at``). The
message is sent after the commit, holds an id and nothing else, and may arrive twice or never: who hears it takes the call whose
turn it is (:mod:`invocations.claiming`), and a call that nobody took in time is rung for again by every sweeper.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from invocations.models import Invocation, State
from toolhub.kernel.db import database_now
from toolhub.kernel.faults import fault
from toolhub.kernel.names import QUEUES, RUN_INVOCATION

if TYPE_CHECKING:
    from uuid import UUID

log = logging.getLogger("toolhub.queue")
# What kombu's transports raise when the broker does not answer, mapped or not.
BROKER_ERRORS = (BrokerError, ConnectionError, TimeoutError, OSError)
LOST_MESSAGE_AFTER = timedelta(seconds=2)


def send(invocation_id: UUID, work_class: str) -> None:
    """Ring the bell once. Raises one of ``BROKER_ERRORS`` when nobody takes the message."""
    current_app.send_task(
        RUN_INVOCATION,
        kwargs={"invocation_id": str(invocation_id)},
        queue=QUEUES[work_class],
        retry=False,
        ignore_result=True,
        expires=None,
    )


def ring(invocation: Invocation) -> bool:
    """Tell the workers of a call that was just queued. False when the broker does not answer."""
    try:
        send(invocation.pk, invocation.work_class)
    except BROKER_ERRORS as error:
        log.warning("The broker does not answer, %s waits to be rung for again: %s", invocation.wire_id, error)
        return False
    return True


def ring_again(*, limit: int) -> int:
    """The relay: send the messages that are due since a while. Their calls were committed by a process that died before it sent
    them, or the broker has lost them, or all workers are busy.
    """
    with transaction.atomic():
        due = Invocation.objects.select_for_update(skip_locked=True, of=("self",)).filter(
            state=State.QUEUED, rung_at__lte=database_now() - LOST_MESSAGE_AFTER
        )
        found = list(due.order_by("rung_at").only("id", "work_class")[:limit])
        Invocation.objects.filter(pk__in=[each.pk for each in found]).update(rung_at=database_now())
        if found:
            fault("relay.before_commit")
    if found:
        fault("relay.committed")
    return sum(1 for each in found if ring(each))
