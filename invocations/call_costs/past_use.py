"""Past use: what a budget would have counted on each of the last days, for whoever is about to set it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F, Sum
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from access.models import BudgetScope, Dimension
from invocations.call_costs.cost_sums import MAX_CALLS, begin_of
from invocations.call_costs.models import CallCost
from invocations.call_hours.models import CallHour

if TYPE_CHECKING:
    from datetime import date, datetime
    from uuid import UUID

    from django.db.models import QuerySet

DAYS = 14
SUMS = {
    Dimension.MONEY: Sum("micros"),
    Dimension.TOKENS: Sum(Coalesce(F("input_tokens"), 0) + Coalesce(F("output_tokens"), 0)),
}


@dataclass(frozen=True, slots=True)
class DayUse:
    """In the units of the budget: money in millionths."""

    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class PastUse:
    """``cut_at``: what was before it is left out, since there was too much; None: nothing is."""

    days: list[DayUse]
    cut_at: datetime | None = None


def load_past_use(
    *, tenant_id: UUID, dimension: str, currency: str, now: datetime, agent_id: UUID | None = None, tool: str = ""
) -> PastUse | None:
    """Of the whole tenant, or of one agent or tool. Calls are those of hours that are over. None: nobody counts this by the day."""
    since = begin_of(DAYS, now)
    found: dict[date, int]
    cut_at = None
    if dimension in (Dimension.CALLS, Dimension.RATE):
        found = _count_calls(tenant_id, since, agent_id, tool)
    elif dimension in SUMS:
        rows = CallCost.objects.filter(tenant_id=tenant_id, made_at__gte=since)
        rows = rows.filter(currency=currency) if dimension == Dimension.MONEY else rows
        rows = rows.filter(agent_id=agent_id) if agent_id else rows
        rows = rows.filter(tool=tool) if tool else rows
        cut_at = _find_cut(rows)
        found = _sum_costs(rows if cut_at is None else rows.filter(made_at__gt=cut_at), dimension)
    else:
        return None
    first = timezone.localtime(since).date()
    days = [DayUse(day, found.get(day, 0)) for day in (first + timedelta(days=n) for n in range(DAYS))]
    return PastUse(days, cut_at)


def _count_calls(tenant_id: UUID, since: datetime, agent_id: UUID | None, tool: str) -> dict[date, int]:
    rows = CallHour.objects.filter(tenant_id=tenant_id, hour__gte=since)
    rows = rows.filter(agent_id=agent_id) if agent_id else rows.filter(agent=None)  # a call is in a row of each kind
    if tool:
        rows = rows.filter(tool=tool)
    sums = rows.annotate(day=TruncDate("hour")).values("day").annotate(sum=Sum("calls")).order_by("day")
    return {each["day"]: each["sum"] for each in sums}


def _find_cut(rows: QuerySet[CallCost]) -> datetime | None:
    """At most :data:`MAX_CALLS` calls are counted, the newest: when the first was made that is not."""
    return rows.order_by("-made_at").values_list("made_at", flat=True)[MAX_CALLS : MAX_CALLS + 1].first()


def _sum_costs(rows: QuerySet[CallCost], dimension: str) -> dict[date, int]:
    sums = (
        rows.annotate(day=TruncDate("made_at")).values("day").annotate(sum=SUMS[Dimension(dimension)]).order_by("day")
    )
    return {each["day"]: each["sum"] or 0 for each in sums}


def can_be_counted(scope: str) -> bool:
    """Whether past calls are counted by it: nobody counts those under one grant."""
    return scope != BudgetScope.GRANT
