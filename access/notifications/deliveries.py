"""Deliveries of notifications: by mail, or as signed requests to a webhook.

Their sender looks now and then whether there is something to tell of that nobody's request brings to light.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings

from access.budgets.alerts import notify_low_budgets
from access.models import Delivery, Notification
from access.notifications.evidence_alarms import notify_alarms
from access.notifications.mails import build_mail
from evidence.deliveries import queue
from evidence.deliveries.messages import AddressEnded, MessageQueue
from evidence.deliveries.signed_requests import SignedRequest
from evidence.keys.keystore import get_keystore
from kernel.http.outbound import OutboundFailed
from kernel.ids import encode

if TYPE_CHECKING:
    import threading

    from django.core.mail import EmailMessage
    from django.db.models import QuerySet

    from evidence.deliveries.messages import DeliveryAttempt, Outgoing

BUDGETS_EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class Mail:
    """A message to an address of mail."""

    message: EmailMessage
    body: bytes = b""

    def send(self) -> None:
        self.message.send()


class NotificationQueue(MessageQueue[Delivery]):
    """Messages to the channels of people."""

    name = "notifications"
    log = logging.getLogger("toolhub.deliveries")
    every_s = 2.0
    limits = {"notification_id": 4}
    model = Delivery
    address = "notification_id"
    related = ("notification",)

    def list_due(self) -> QuerySet[Any]:
        return super().list_due().select_related("notification")  # which has the tenant

    def prepare_message(self, message: Delivery) -> Outgoing:
        channel = message.notification
        if channel.disabled_at is not None:
            raise AddressEnded("The channel was ended.")
        return _build_mail(message) if channel.channel == Notification.Channel.EMAIL else _build_request(message)

    def changed_columns(self, attempt: DeliveryAttempt) -> dict[str, Any]:
        return {"last_error": attempt.error}


def delivery_link(message: Delivery) -> str:
    return f"{settings.TOOLHUB_PUBLIC_URL}{message.body.get('url', '/')}"


def _build_mail(message: Delivery) -> Mail:
    if not settings.TOOLHUB_EMAIL_URL:
        raise OutboundFailed("This hub has no mail server: TOOLHUB_EMAIL_URL is not set.")
    return Mail(build_mail(message, link=delivery_link(message)))


def _build_request(message: Delivery) -> SignedRequest:
    channel, link = message.notification, delivery_link(message)
    secret = get_keystore().unwrap(channel.secret_key_id, bytes(channel.secret), context=channel.tenant_id.bytes)
    data = message.body | {"subject": message.subject, "tenant": encode("ten", channel.tenant_id), "url": link}
    body = json.dumps({"type": message.event, "timestamp": message.created_at.isoformat(), "data": data}).encode()
    return SignedRequest(channel.target, message.wire_id, body, [secret])


class AlarmWatch:
    """Looks now and then at budgets and at the evidence."""

    def __init__(self) -> None:
        self._looked_at = 0.0

    def look(self) -> None:
        if time.monotonic() - self._looked_at >= BUDGETS_EVERY_S:
            self._looked_at = time.monotonic()
            notify_low_budgets()
            notify_alarms()


QUEUE = NotificationQueue()
send_due = partial(queue.send_due, QUEUE)


def run_sender(stop: threading.Event) -> None:
    queue.run_queue(QUEUE, stop, before=AlarmWatch().look)
