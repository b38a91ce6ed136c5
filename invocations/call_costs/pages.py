"""Pages of spending: what models, tools and agents have cost, day by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from invocations.call_costs.cost_sums import find_budget_level, load_spending
from invocations.call_costs.services import find_currency
from kernel.components.quantities import money
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from django.http import HttpResponse

    from invocations.call_costs.cost_sums import Spending, SpendingRow

PERIODS = (7, 30)


def _link(**filters: str) -> str:
    return f"{reverse('invocations')}?{urlencode(filters)}"


def _describe(rows: list[SpendingRow], by: str, period: dict[str, str]) -> list[dict[str, Any]]:
    """Each with the list of its calls; the last row, of all others, has none."""
    top = max((each.micros for each in rows), default=0)
    return [
        {"row": each, "top": top, "url": _link(**{by: each.of}, **period) if each.of else "", "name": each.of}
        for each in rows
    ]


def _describe_days(said: Spending) -> list[dict[str, Any]]:
    top = max((each.micros for each in said.days), default=0)
    return [
        {"row": each, "top": top, "url": _link(**{"from": str(each.of), "to": str(each.of)}), "name": str(each.of)}
        for each in said.days
    ]


@require_GET
@needs("budgets.view")
def spending(request: ConsoleRequest) -> HttpResponse:
    """Context: said (Spending), total, days, models, tools and agents (lists of {row, top, url, name}), columns (of the plot: caption
    and amount), plot_label, level (BudgetLevel or None), level_micros, level_word, period, periods, since (day), today (day).
    """
    asked = request.GET.get("days", str(PERIODS[0]))
    if asked not in map(str, PERIODS):
        raise SchemaInvalid(gettext("Spending is shown of 7 or of 30 days."))
    tenant_id, now, days = request.principal.tenant_id, database_time(), int(asked)
    said = load_spending(tenant_id=tenant_id, currency=find_currency(tenant_id), days=days, now=now)
    level = find_budget_level(tenant_id)
    since, today = str(timezone.localtime(said.since).date()), str(timezone.localtime(now).date())
    period = {"from": since, "to": today}
    context = {
        "section": "spending",
        "said": said,
        "total": said.total,
        "days": _describe_days(said),
        "models": _describe(said.models, "tool", period),
        "tools": _describe(said.tools, "tool", period),
        "agents": _describe(said.agents, "agent", period),
        "columns": [(date_format(each.of, "m-d"), each.micros) for each in said.days],
        "plot_label": gettext("Spent on each of %(days)d days, %(sum)s in all.")
        % {"days": days, "sum": money(said.total.micros, said.currency)},
        "level": level,
        "level_micros": level.micros if level else None,
        "level_word": gettext("Budget: %(amount)s a day") % {"amount": money(level.micros, said.currency)}
        if level
        else "",
        "period": days,
        "periods": PERIODS,
        "since": since,
        "today": today,
    }
    return render_page(request, "spending/spending.html", context)
