"""Budget alerts: budgets that are nearly used up, told of before calls are refused.

Looked at now and then, beside the sender of messages, and never on the way of a call. Told once a window.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F

from access.models import Budget, BudgetWindow, Delivery, Notification
from access.notifications.services import notify_channels
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from uuid import UUID

EVENT = "budget.low"
LOW = 0.8  # of what the window allows


def notify_low_budgets() -> int:
    """Tell the channels that want to know; returns of how many budgets."""
    rows = Notification.objects.filter(disabled_at=None).only("tenant_id", "events")
    return sum(_tell(tenant_id) for tenant_id in {row.tenant_id for row in rows if EVENT in row.events})


def _tell(tenant_id: UUID) -> int:
    now = database_time()
    told = 0
    for budget in Budget.objects.filter(tenant_id=tenant_id, ended_at=None, window_s__gt=0, amount__gt=0):
        number = int(now.timestamp()) // budget.window_s
        low = BudgetWindow.objects.filter(
            budget=budget, number=number, used__gte=(budget.amount + F("raised")) * LOW
        ).exists()
        begun = datetime.fromtimestamp(number * budget.window_s, UTC)
        before = Delivery.objects.filter(
            event=EVENT, subject=budget.wire_id, created_at__gte=begun, notification__tenant_id=budget.tenant_id
        )
        if low and not before.exists():
            until = datetime.fromtimestamp((number + 1) * budget.window_s, UTC).isoformat(timespec="minutes")
            said = {"budget": str(budget), "until": until, "url": f"/budgets/{budget.wire_id}"}
            with transaction.atomic():
                told += bool(notify_channels(EVENT, subject=budget.wire_id, body=said, tenant_id=budget.tenant_id))
    return told
