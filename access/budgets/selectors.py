"""Budget selectors: which budgets there are, how full they are, and whom a full one refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, Case, ExpressionWrapper, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce

from access.budgets.forecast import Forecast, compute_forecast
from access.budgets.lines import BudgetLine, build_line, window_number, with_windows
from access.models import Budget, BudgetWindow, Dimension
from kernel.http.pagination import fetch_excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from access.models.budgets import BudgetQuerySet
    from kernel.http.pagination import Excerpt

PAST_WINDOWS = 4
SHOWN_WINDOWS = 30
NEARLY = 80  # percent; from here on a person should know
STATES = ("over", "nearly", "ended")


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """A budget as it stands now."""

    budget: Budget
    line: BudgetLine
    forecast: Forecast | None

    @property
    def taken(self) -> int:
        return self.line.used + self.line.reserved

    @property
    def percent(self) -> int:
        """How much of it is taken; a budget of nothing is full. Not rounded up: 100 is full."""
        return self.taken * 100 // self.line.amount if self.line.amount else 100

    @property
    def level(self) -> str:
        """``over``: nothing is left; ``nearly``: not much is; empty: enough, or not counted here."""
        if self.line.is_rate or self.budget.ended_at:
            return ""
        return "over" if self.line.remaining == 0 else "nearly" if self.percent >= NEARLY else ""


def load_budget_statuses(budgets: Sequence[Budget], now: datetime) -> list[BudgetStatus]:
    """In two queries, however many there are."""
    past = load_past_usage(budgets, now)
    found = []
    for budget, window in with_windows(budgets, now):
        line = build_line(budget, window)
        ahead = None if budget.ended_at else compute_forecast(line, past.get(budget.pk, []), now)
        found.append(BudgetStatus(budget, line, ahead))
    return found


def load_past_usage(budgets: Sequence[Budget], now: datetime) -> dict[object, list[int]]:
    """What the windows before this one used, the newest first. One without a row used nothing, if the budget was there."""
    wanted = Q(pk=None)
    for budget in budgets:
        if budget.window_s:
            number = window_number(budget.window_s, now)
            wanted |= Q(budget_id=budget.pk, number__gte=number - PAST_WINDOWS, number__lt=number)
    used: dict[object, dict[int, int]] = {}
    for window in BudgetWindow.objects.filter(wanted):
        used.setdefault(window.budget_id, {})[window.number] = window.used
    past: dict[object, list[int]] = {}
    for budget in budgets:
        if not budget.window_s:
            continue
        number, since = window_number(budget.window_s, now), window_number(budget.window_s, budget.set_at)
        rows = used.get(budget.pk, {})
        past[budget.pk] = [
            rows.get(each, 0)
            for each in range(number - 1, number - 1 - PAST_WINDOWS, -1)
            if each in rows or each >= since
        ]
    return past


def annotate_usage(budgets: BudgetQuerySet, now: datetime) -> Any:
    """A queryset, annotated with ``taken`` and ``allowed`` in the current window, for filters; rates are left out."""
    whole = BigIntegerField()
    number = Case(
        When(window_s=0, then=Value(0)),
        default=ExpressionWrapper(Value(int(now.timestamp()), whole) / F("window_s"), output_field=whole),
        output_field=whole,
    )
    current = BudgetWindow.objects.filter(budget=OuterRef("pk"), number=OuterRef("current"))
    taken = current.annotate(taken=F("used") + F("reserved")).values("taken")
    return (
        budgets.filter(ended_at=None)
        .exclude(dimension=Dimension.RATE)
        .annotate(current=number)
        .annotate(
            taken=Coalesce(Subquery(taken), Value(0), output_field=whole),
            allowed=F("amount") + Coalesce(Subquery(current.values("raised")), Value(0), output_field=whole),
        )
    )


def filter_by_state(budgets: BudgetQuerySet, state: str, now: datetime) -> BudgetQuerySet:
    """Those in force; ``nearly`` includes ``over``."""
    match state:
        case "ended":
            return budgets.exclude(ended_at=None)
        case "over" | "nearly":
            percent = 100 if state == "over" else NEARLY
            found: BudgetQuerySet = annotate_usage(budgets, now).filter(taken__gte=F("allowed") * percent / 100)
            return found
        case _:
            return budgets.filter(ended_at=None)


def latest_windows(budget: Budget, now: datetime) -> Excerpt[BudgetWindow]:
    """Those before the current one that anything was taken from, the newest first."""
    number = window_number(budget.window_s, now)
    return fetch_excerpt(budget.windows.filter(number__lt=number).order_by("-number"), SHOWN_WINDOWS)
