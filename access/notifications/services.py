"""Notifications: who is told, outside the console, that something waits for a person.

:func:`notify_channels` writes one :class:`Delivery` for each channel of the tenant that wants the event, in the transaction of what it
tells of; :mod:`access.notifications.deliveries` sends them. A message names things and links to them, and never holds a
value of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from django.utils.translation import gettext_lazy

from access.models import Delivery, Notification
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

EVENTS = {
    "consent.requested": gettext_lazy("A consent is waiting for a decision"),
    "grant.requested": gettext_lazy("A grant was requested"),
    "connection.requested": gettext_lazy("Somebody asks to connect a program"),
    "review.waiting": gettext_lazy("A tool version is waiting for review"),
    "tool.drifted": gettext_lazy("A tool of a server elsewhere has changed and was paused"),
    "account.requested": gettext_lazy("A person is asked for their account at a server"),
    "account.ended": gettext_lazy("A person's account at a server is not connected any more"),
    "account.client_refused": gettext_lazy("An authorization server does not know the hub any more"),
    "policy.waiting": gettext_lazy("A policy draft is waiting to be published"),
    "budget.low": gettext_lazy("A budget is nearly used up"),
    "halt.thrown": gettext_lazy("A kill switch was thrown"),
    "evidence.alarm": gettext_lazy("The evidence needs attention"),
}
# What a message may say: names and one link. Anything else could be a value, and mail is read on other machines.
MAY_SAY = frozenset(
    {"agent", "tool", "version", "policy", "budget", "reach", "until", "alarm", "member", "program", "url"}
)
MAX_WORD = 200


def notify_channels(event: str, *, subject: str, body: Mapping[str, str], tenant_id: UUID) -> int:
    """Tell the tenant's channels of ``event`` about the thing ``subject`` (a wire id); returns how many will be told.

    ``body`` holds names of :data:`MAY_SAY`; ``url`` is a path of the console, such as ``/consents/cns_…``.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("notify() must run in the transaction of what it tells of.")
    unknown = sorted(set(body) - MAY_SAY)
    if event not in EVENTS or unknown:
        raise ValueError(f"A message cannot say {unknown[0] if unknown else event}: see EVENTS and MAY_SAY.")
    said = {name: str(value)[:MAX_WORD] for name, value in body.items() if value}
    rows = [
        Delivery(notification=row, event=event, subject=subject, body=said, next_attempt_at=database_time())
        for row in list_channels(event, tenant_id=tenant_id)
    ]
    return len(Delivery.objects.bulk_create(rows))


def list_channels(event: str, *, tenant_id: UUID) -> list[Notification]:
    """The tenant's channels that want to be told of ``event``."""
    rows = Notification.objects.filter(tenant_id=tenant_id, disabled_at=None).only("pk", "events")
    return [row for row in rows if event in row.events]
