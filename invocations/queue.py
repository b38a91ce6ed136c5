"""How does an accepted call reach a worker?

The message holds an id and nothing else, may arrive twice or never, and is sent in the transaction that deletes its
:class:`Outbox` row: a crash in between sends it again, and the worker's claim absorbs that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from invocations.models import Outbox
from toolhub.kernel.names import QUEUE_INVOCATIONS, RUN_INVOCATION

if TYPE_CHECKING:
    from uuid import UUID

log = logging.getLogger("toolhub.queue")
# What kombu's transports raise when the broker does not answer, mapped or not.
BROKER_ERRORS = (BrokerError, ConnectionError, TimeoutError, OSError)


def put_in_outbox(invocation_id: UUID) -> None:
    """Make sure that a message will be sent if the current transaction commits."""
    Outbox.objects.create(invocation_id=invocation_id)


def send(invocation_id: UUID) -> None:
    """Ring the bell once. Raises one of ``BROKER_ERRORS`` when nobody takes the message."""
    current_app.send_task(
        RUN_INVOCATION,
        kwargs={"invocation_id": str(invocation_id)},
        queue=QUEUE_INVOCATIONS,
        retry=False,
        ignore_result=True,
    )


def relay(*, invocation_id: UUID | None = None, limit: int = 100) -> bool:
    """Send what is in the outbox, or one call's message. False when the broker does not answer; the rows then stay."""
    rows = Outbox.objects.select_for_update(skip_locked=True).order_by("id")
    if invocation_id is not None:
        rows = rows.filter(invocation_id=invocation_id)
    try:
        with transaction.atomic():
            for row in rows[:limit]:
                send(row.invocation_id)
                row.delete()
    except BROKER_ERRORS as error:
        log.warning("The broker does not answer, messages stay in the outbox: %s", error)
        return False
    return True
