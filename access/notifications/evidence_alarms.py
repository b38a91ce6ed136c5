"""Evidence alarms: who is told that the evidence is damaged or has fallen silent.

Looked at now and then, beside the sender of messages and so also when no keeper is alive. Of one alarm a channel is told once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from access.models import Delivery, Notification
from access.notifications.services import notify_channels
from evidence.integrity.alarms import list_alarms

if TYPE_CHECKING:
    from uuid import UUID

EVENT = "evidence.alarm"


def notify_alarms() -> int:
    """Tell the channels that want to know; returns of how many alarms."""
    rows = Notification.objects.filter(disabled_at=None).only("tenant_id", "events")
    return sum(_tell(tenant_id) for tenant_id in {row.tenant_id for row in rows if EVENT in row.events})


def _tell(tenant_id: UUID) -> int:
    told = 0
    for alarm in list_alarms(tenant_id):
        before = Delivery.objects.filter(event=EVENT, subject=alarm.subject, notification__tenant_id=tenant_id)
        if not before.exists():
            with transaction.atomic():
                said = {"alarm": alarm.kind, "url": "/evidence/integrity"}
                told += bool(notify_channels(EVENT, subject=alarm.subject, body=said, tenant_id=tenant_id))
    return told
