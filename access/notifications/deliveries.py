"""How do messages leave the hub?

A loop of its own beside the sweeper, in any number of processes: each due message is claimed with a compare-and-set, sent with
nothing of the database held, and its outcome written down. What fails is tried again with growing pauses, and in the end
given up. A message may arrive twice, never changed: receivers know it by its id.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.utils import translation

from access.budgets.alerts import notify_low_budgets
from access.models import Delivery, Notification
from access.notifications.evidence_alarms import notify_alarms
from access.notifications.services import EVENTS
from evidence.keys.keystore import get_keystore
from evidence.webhooks.messages import CLAIMED_FOR, next_attempt, signed_headers
from kernel.database.connections import database_time, release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from kernel.ids import encode
from kernel.loops import repeat_work
from kernel.problems import Problem

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

log = logging.getLogger("toolhub.deliveries")
BATCH = 20
EVERY_S = 2.0
BUDGETS_EVERY_S = 30.0
MAX_ERROR = 300


def send_due(*, limit: int = BATCH) -> int:
    """Send what is due; returns how many arrived."""
    now = database_time()
    due = list(Delivery.objects.filter(next_attempt_at__lte=now).order_by("next_attempt_at")[:limit])
    return sum(_send_one(row) for row in due if _claim(row))


def _claim(row: Delivery) -> bool:
    until = database_time() + CLAIMED_FOR
    mine = Delivery.objects.filter(pk=row.pk, next_attempt_at=row.next_attempt_at)
    return bool(mine.update(next_attempt_at=until, attempts=F("attempts") + 1))


def _send_one(row: Delivery) -> bool:
    row = Delivery.objects.select_related("notification").get(pk=row.pk)
    channel = row.notification
    if channel.disabled_at is not None:
        _settle(row, error="The channel was ended.", final=True)
        return False
    try:
        SENDERS[channel.channel](channel, row)
    except AddressRefused as refused:
        _settle(row, error=str(refused), final=True)  # asking again would change nothing
    except (OutboundFailed, Problem, OSError) as failed:
        _settle(row, error=str(failed) or type(failed).__name__)
    else:
        _settle(row)
        return True
    return False


def _settle(row: Delivery, *, error: str = "", final: bool = False) -> None:
    now = database_time()
    changes = {
        "delivered_at": None if error else now,
        "next_attempt_at": next_attempt(row.attempts, now=now) if error and not final else None,
        "last_error": error[:MAX_ERROR],
    }
    Delivery.objects.filter(pk=row.pk, attempts=row.attempts).update(**changes)
    if error:
        log.warning("%s was not delivered: %s", row.wire_id, error)


def delivery_link(row: Delivery) -> str:
    return f"{settings.TOOLHUB_PUBLIC_URL}{row.body.get('url', '/')}"


def build_mail(row: Delivery) -> EmailMessage:
    """What people read: what happened, the names that it concerns, and where to look. In the hub's own language."""
    with translation.override(settings.LANGUAGE_CODE):
        title = str(EVENTS.get(row.event, row.event))
        names = [f"{name}: {value}" for name, value in sorted(row.body.items()) if name != "url"]
    lines = [f"{title}.", "", *names, delivery_link(row), "", f"{row.event} · {row.subject} · {row.wire_id}"]
    return EmailMessage(
        subject=f"[toolhub] {title}",
        body="\n".join(lines),
        to=[row.notification.target],
        headers={"Auto-Submitted": "auto-generated"},
    )


def _mail(channel: Notification, row: Delivery) -> None:
    del channel
    if not settings.TOOLHUB_EMAIL_URL:
        raise OutboundFailed("This hub has no mail server: TOOLHUB_EMAIL_URL is not set.")
    release_connection()
    build_mail(row).send()


def _post(channel: Notification, row: Delivery) -> None:
    secret = get_keystore().unwrap(channel.secret_key_id, bytes(channel.secret), context=channel.tenant_id.bytes)
    data = row.body | {"subject": row.subject, "tenant": encode("ten", channel.tenant_id), "url": delivery_link(row)}
    body = json.dumps({"type": row.event, "timestamp": row.created_at.isoformat(), "data": data}).encode()
    release_connection()
    send_request(channel.target, method="POST", body=body, headers=signed_headers([secret], id=row.wire_id, body=body))


SENDERS: dict[str, Callable[[Notification, Delivery], None]] = {
    Notification.Channel.EMAIL: _mail,
    Notification.Channel.WEBHOOK: _post,
}


class Sender:
    """Sends what is due, and looks now and then whether there is something to tell of."""

    def __init__(self) -> None:
        self._looked_at = 0.0

    def send(self) -> None:
        if time.monotonic() - self._looked_at >= BUDGETS_EVERY_S:
            self._looked_at = time.monotonic()
            notify_low_budgets()
            notify_alarms()
        send_due()


def run_sender(stop: threading.Event) -> None:
    """Send until told to stop."""
    repeat_work(Sender().send, stop, every_s=EVERY_S, what="Messages were not sent", log=log)
