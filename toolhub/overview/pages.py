"""Page of the overview: what a person looks at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from access.budgets.selectors import filter_by_state, load_budget_statuses
from access.models import Budget, Dimension, Grant
from evidence.integrity.alarms import Alarm, list_alarms, shared_alarms
from invocations.call_costs.cost_sums import begin_of, sum_spending
from invocations.call_costs.services import find_currency
from invocations.models import Invocation
from invocations.service_levels.call_health import WINDOW, measure_health
from invocations.service_levels.unmapped_errors import list_unmapped_since
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import SchemaInvalid
from registry.halt_notices import read_halt_notices
from registry.models import Tool, ToolKind, ToolState
from toolhub.overview.call_figures import PERIODS, build_call_figures
from toolhub.overview.unhealthy_things import list_unhealthy_things
from toolhub.overview.waiting_items import list_waiting_groups
from toolhub.sidebar import find_start

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpResponse

    from access.budgets.selectors import BudgetStatus
    from kernel.principal import Principal

JUDGED = 5_000  # of the newest calls, by which the hub's health is judged
BUDGETS_READ, BUDGETS_SHOWN = 200, 5


def build_checklist(by: Principal) -> list[dict[str, Any]]:
    """The way to the first governed call, with what is done already."""
    done = {
        "tool": Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).exists(),
        "enabled": Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(state=ToolState.ENABLED).exists(),
        "grant": Grant.objects.visible_to(by).exists(),
        "call": Invocation.objects.visible_to(by).exists(),
    }
    return [
        {"done": done["tool"], "label": gettext("Submit a tool version"), "url": reverse("tool_submit")},
        {"done": done["enabled"], "label": gettext("Have it reviewed, then enable it"), "url": reverse("reviews")},
        {"done": done["grant"], "label": gettext("Give an agent a grant for it"), "url": reverse("grants")},
        {"done": done["call"], "label": gettext("Make the first call"), "url": reverse("api_reference")},
    ]


def _alarms_for(by: Principal) -> list[Alarm]:
    """Of the evidence: for those who may see the tenant's, and, of what all tenants share, for those who manage the hub."""
    if by.may("evidence.view"):
        return list_alarms(by.tenant_id)
    return shared_alarms() if by.may("hub.manage") else []


def _list_budgets(by: Principal, now: datetime) -> list[BudgetStatus]:
    """The fullest ones."""
    mine = Budget.objects.visible_to(by).exclude(dimension=Dimension.RATE).select_related("agent", "grant")
    rows = list(filter_by_state(mine, "", now)[:BUDGETS_READ])
    return sorted(load_budget_statuses(rows, now), key=lambda each: -each.percent)[:BUDGETS_SHOWN]


def _spent(by: Principal, now: datetime) -> dict[str, Any]:
    currency = find_currency(by.tenant_id)
    micros = sum_spending(tenant_id=by.tenant_id, currency=currency, since=begin_of(1, now))
    return {"micros": micros, "currency": currency}


@require_GET
@needs("invocations.view")
def start(request: ConsoleRequest) -> HttpResponse:
    """To where this person's work begins."""
    return redirect(find_start(request))


@require_GET
@needs("invocations.view")
def overview(request: ConsoleRequest) -> HttpResponse:
    """``?period=24h|7d``. Context: groups (WaitingGroups), checklist (list of {done, label, url}, shown until all are done),
    onboarding (bool), period and periods, those of :func:`build_call_figures`, budgets (BudgetStatuses, the fullest first) and spent
    ({micros, currency}: today) with currency for who may see them, unhealthy (UnhealthyThings), latest (list of Invocation), health
    (CallHealth of the newest calls), unmapped (list of Found, of the whole hub), alarms (of the evidence), sees_evidence.
    """
    by, now = request.principal, database_time()
    asked = request.GET.get("period", "24h")
    if asked not in PERIODS:
        raise SchemaInvalid(gettext("The overview shows the last 24 hours (24h) or 7 days (7d)."))
    period = PERIODS[asked]
    mine = Invocation.objects.visible_to(by)
    steps = build_checklist(by)
    sees_budgets = by.may("budgets.view")
    spent = _spent(by, now) if sees_budgets else None
    context = build_call_figures(by, period, now) | {
        "section": "overview",
        "groups": list_waiting_groups(by, now),
        "checklist": steps,
        "onboarding": not all(step["done"] for step in steps),
        "period": period,
        "periods": PERIODS.values(),
        "budgets": _list_budgets(by, now) if sees_budgets else [],
        "spent": spent,
        "currency": spent and spent["currency"],
        "unhealthy": list_unhealthy_things(by, read_halt_notices(request), now),
        "latest": list(mine.select_related("agent", "version").order_by("-pk")[:8]),
        "health": measure_health(mine, now, newest=JUDGED),
        "unmapped": list_unmapped_since(now - WINDOW),
        "alarms": _alarms_for(by),
        "sees_evidence": by.may("evidence.view"),
    }
    return render_page(request, "overview.html", context, partial="overview-body")
