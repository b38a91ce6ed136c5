"""Cost sums: what a tenant's calls have taken since a day, by day, by tool or model, and by agent.

Each question is one walk over the index of a tenant's costs, of at most :data:`MAX_CALLS` of them; where there are more, the newest
count, and the answer says since when.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from access.models import Budget, BudgetScope, Dimension
from invocations.call_costs.models import CallCost
from registry.model_providers.manifests import GROUP

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from django.db.models import QuerySet

MAX_CALLS = 200_000
MAX_ROWS = 25  # of each table; what is left is in one more row
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """``of``: a day, a tool or an agent. ``unpriced``: how many of its calls have no known price, and are in no sum."""

    of: Any
    micros: int
    calls: int
    tokens: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class Spending:
    """``others``: (currency, micros) of what was spent in another currency than ``currency``. ``cut_at``: what was before it is left
    out, since there was too much; None: nothing is.
    """

    currency: str
    since: datetime
    cut_at: datetime | None
    days: list[SpendingRow]
    models: list[SpendingRow]
    tools: list[SpendingRow]
    agents: list[SpendingRow]
    others: list[tuple[str, int]] = field(default_factory=list)

    @property
    def total(self) -> SpendingRow:
        return add_rows(None, self.days)


def add_rows(of: Any, rows: list[SpendingRow]) -> SpendingRow:
    return SpendingRow(
        of,
        sum(each.micros for each in rows),
        sum(each.calls for each in rows),
        sum(each.tokens for each in rows),
        sum(each.unpriced for each in rows),
    )


def begin_of(days: int, now: datetime) -> datetime:
    """The beginning of the first of so many days, today among them, where the hub is."""
    today = timezone.localtime(now).date()
    first = today - timedelta(days=days - 1)
    return timezone.make_aware(datetime(first.year, first.month, first.day))  # noqa: DTZ001  aware now


def load_spending(*, tenant_id: UUID, currency: str, days: int, now: datetime) -> Spending:
    since = begin_of(days, now)
    rows = CallCost.objects.filter(tenant_id=tenant_id, made_at__gte=since)
    cut_at = rows.order_by("-made_at").values_list("made_at", flat=True)[MAX_CALLS : MAX_CALLS + 1].first()
    if cut_at is not None:
        rows = rows.filter(made_at__gt=cut_at)
    mine = rows.filter(currency=currency)
    by_tool = _sum(mine, "tool")
    found = {each.of: each for each in _sum(mine.annotate(day=TruncDate("made_at")), "day")}
    first = timezone.localtime(since).date()
    every: list[date] = [first + timedelta(days=n) for n in range(days)]
    elsewhere = rows.exclude(currency=currency).values("currency").annotate(micros=Sum("micros")).order_by("currency")
    return Spending(
        currency=currency,
        since=since,
        cut_at=cut_at,
        days=[found.get(day) or SpendingRow(day, 0, 0, 0, 0) for day in every],
        models=_shorten([each for each in by_tool if each.of.startswith(f"{GROUP}.")]),
        tools=_shorten([each for each in by_tool if not each.of.startswith(f"{GROUP}.")]),
        agents=_shorten(_sum(mine, "agent__name")),
        others=[(each["currency"], each["micros"] or 0) for each in elsewhere],
    )


def sum_spending(*, tenant_id: UUID, currency: str, since: datetime) -> int:
    """Of at most :data:`MAX_CALLS`, the newest."""
    rows = CallCost.objects.filter(tenant_id=tenant_id, currency=currency, made_at__gte=since).order_by("-made_at")
    return rows[:MAX_CALLS].aggregate(sum=Sum("micros"))["sum"] or 0


def _sum(rows: QuerySet[CallCost], by: str) -> list[SpendingRow]:
    """The dearest first."""
    found = rows.values(by).annotate(
        sum=Sum("micros"),
        calls=Count("pk"),
        tokens=Sum("input_tokens") + Sum("output_tokens"),
        unpriced=Count("pk", filter=Q(micros=None)),
    )
    said = [
        SpendingRow(each[by], each["sum"] or 0, each["calls"], each["tokens"] or 0, each["unpriced"])
        for each in found.order_by()
    ]
    return sorted(said, key=lambda each: (-each.micros, -each.tokens, str(each.of)))


def _shorten(rows: list[SpendingRow]) -> list[SpendingRow]:
    """The rest of a long list as one row, of nothing by name."""
    kept, rest = rows[:MAX_ROWS], rows[MAX_ROWS:]
    return [*kept, add_rows("", rest)] if rest else kept


@dataclass(frozen=True, slots=True)
class BudgetLevel:
    """What of a budget falls on a day; of one whose window is longer, an even part."""

    budget: Budget
    micros: int

    @property
    def is_whole(self) -> bool:
        return self.budget.window_s == DAY_S


def find_budget_level(tenant_id: UUID) -> BudgetLevel | None:
    """The tightest budget of money of the whole tenant; one of a shorter time than a day says nothing of a day."""
    rows = Budget.objects.filter(
        tenant_id=tenant_id, scope=BudgetScope.TENANT, dimension=Dimension.MONEY, ended_at=None, window_s__gte=DAY_S
    )
    found = [BudgetLevel(row, row.amount * DAY_S // row.window_s) for row in rows]
    return min(found, key=lambda each: each.micros, default=None)
