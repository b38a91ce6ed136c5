"""Pages of budgets: how full they are; setting, raising and ending them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.budgets import services
from access.budgets.forms import DIMENSION_WORDS, SCOPE_WORDS, AmountForm, BudgetForm, to_stored_amount
from access.budgets.selectors import STATES, filter_by_state, latest_windows, load_budget_statuses
from access.budgets.services import DAY_S
from access.models import Agent, Budget, BudgetScope, Dimension
from evidence.search.related_facts import facts_about
from invocations.call_costs.past_use import can_be_counted, load_past_use
from invocations.call_costs.services import find_currency
from kernel.components.forms import ReasonForm, fill_form, submit_form
from kernel.components.sentences import translate_sentence
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem, SchemaInvalid
from registry.models import Installation

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpResponse

    from kernel.principal import Principal

OFFERED = 200  # tools
USE_BY = ("scope", "agent", "tool", "dimension", "amount", "window_s")
FILTERS = {"state": STATES, "scope": BudgetScope.values, "dimension": Dimension.values}


@require_GET
@needs("budgets.view")
def budgets(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Budget), rows (list of Standing), filters ({state, scope, dimension, agent}), states, scopes,
    dimensions, agents, may_manage, currency.
    """
    now, by = database_time(), request.principal
    filters = {name: request.GET.get(name, "") for name in (*FILTERS, "agent")}
    for name, allowed in FILTERS.items():
        if filters[name] and filters[name] not in allowed:
            raise SchemaInvalid(gettext("There is no such value to filter by."))
    found = filter_by_state(Budget.objects.visible_to(by), filters["state"], now).select_related("agent", "grant")
    for name, column in (("scope", "scope"), ("dimension", "dimension"), ("agent", "agent__name")):
        if filters[name]:
            found = found.filter(**{column: filters[name]})
    page = fetch_page(found, prefix="bud", after=request.GET.get("after", ""))
    context = {
        "section": "budgets",
        "page": page,
        "rows": load_budget_statuses(page.rows, now),
        "filters": filters,
        "states": STATES,
        "scopes": SCOPE_WORDS.items(),
        "dimensions": DIMENSION_WORDS.items(),
        "agents": Agent.objects.filter(tenant_id=by.tenant_id).order_by("name"),
        "may_manage": by.may("budgets.manage"),
        "currency": find_currency(by.tenant_id),
    }
    return render_page(request, "budgets/budget_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("budgets.manage")
def budget_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (BudgetForm, filled in from ?scope=, ?tool=, ?agent= and ?dimension=), tools (ids to choose from), currency, use
    (see :func:`_chart_use`). POST check: only shows the use so far.
    """
    by = request.principal
    asked = {name: request.GET[name] for name in ("scope", "tool", "agent", "dimension") if name in request.GET}
    form = fill_form(BudgetForm, request, initial=asked, by=by)
    if made := submit_form(form, lambda: services.set_budget(by=request.principal, **form.terms())):
        messages.success(request, gettext("The budget is set. It applies from the next call."))
        return redirect("budget", made.pk)
    context = {
        "section": "budgets",
        "form": form,
        "tools": Installation.objects.visible_to(by).order_by("name").values_list("name", flat=True)[:OFFERED],
        "currency": find_currency(by.tenant_id),
        "use": _chart_use(by, {name: form[name].value() or "" for name in USE_BY}),
    }
    return render_page(request, "budgets/budget_form.html", context, status=422 if form.is_bound else 200)


@require_GET
@needs("budgets.manage")
def budget_use(request: ConsoleRequest) -> HttpResponse:
    """``?scope=&agent=&tool=&dimension=&amount=&window_s=``: the part of the form that shows the use so far. Context: use."""
    by = request.principal
    context = {
        "section": "budgets",
        "use": _chart_use(by, {name: request.GET.get(name, "") for name in USE_BY}),
        "form": BudgetForm(by=by, initial=request.GET.dict()),
        "currency": find_currency(by.tenant_id),
    }
    return render_page(request, "budgets/budget_form.html", context, partial="past-use")


def _chart_use(by: Principal, asked: dict[str, Any]) -> dict[str, Any] | None:
    """{days (DayUses), cut_at (what was before it is left out, or None), total, columns, label, dimension, line (the limit, where it
    is one of a day), line_label}. None: it is not counted by the day, or for whom is not chosen yet.
    """
    scope, dimension = str(asked["scope"] or BudgetScope.TENANT), str(asked["dimension"] or Dimension.CALLS)
    named = str(asked.get(scope) or "")
    if not can_be_counted(scope) or (scope != BudgetScope.TENANT and not named):
        return None
    try:
        agent_id = UUID(named) if scope == BudgetScope.AGENT else None
    except ValueError:
        return None
    past = load_past_use(
        tenant_id=by.tenant_id,
        dimension=dimension,
        currency=find_currency(by.tenant_id),
        now=database_time(),
        agent_id=agent_id,
        tool=named if scope == BudgetScope.TOOL else "",
    )
    if past is None:
        return None
    days = past.days
    line = _read_day_limit(asked, dimension)
    return {
        "days": days,
        "cut_at": past.cut_at,
        "total": sum(each.amount for each in days),
        "columns": [(f"{each.day:%m-%d}", each.amount) for each in days],
        "label": gettext("%(what)s on each of the last %(n)d days")
        % {"what": DIMENSION_WORDS[Dimension(dimension)], "n": len(days)},
        "dimension": dimension,
        "line": line,
        "line_label": gettext("Limit") if line else "",
    }


def _read_day_limit(asked: dict[str, Any], dimension: str) -> int | None:
    """What is typed as the limit of a day; None for another window, and for what is no amount."""
    try:
        if int(asked["window_s"] or DAY_S) != DAY_S:
            return None
        return to_stored_amount(Decimal(str(asked["amount"])), dimension) or None
    except (ValueError, ArithmeticError):
        return None


def _budget(request: ConsoleRequest, budget_id: UUID) -> Budget:
    return Budget.objects.visible_to(request.principal).select_related("agent", "grant").get(pk=budget_id)


def _page(request: ConsoleRequest, found: Budget, *, wrong: str = "", form: forms.Form | None = None) -> HttpResponse:
    """``wrong``: which form was not accepted: edit, raise or end."""
    now, by = database_time(), request.principal
    [budget_status] = load_budget_statuses([found], now)
    dimension = found.dimension
    context = {
        "section": "budgets",
        "row": budget_status,
        "currency": find_currency(by.tenant_id),
        "windows": latest_windows(found, now),
        "edit_form": AmountForm(dimension=dimension, initial={"amount": to_typed_amount(found.amount, dimension)}),
        "raise_form": AmountForm(dimension=dimension),
        "end_form": ReasonForm(),
        "wrong": wrong,
        "form": form,
        "facts": facts_about(by, found.wire_id),
        "may_manage": by.may("budgets.manage") and not _why_not(services.check_can_change, found, request),
        "may_raise": by.may("budgets.manage") and not _why_not(services.check_can_raise, found, request),
    }
    return render_page(request, "budgets/budget_detail.html", context, status=422 if wrong else 200)


def _why_not(check: Any, found: Budget, request: ConsoleRequest) -> str:
    try:
        check(found, by=request.principal)
    except Problem as problem:
        return translate_sentence(problem.detail)
    return ""


def to_typed_amount(amount: int, dimension: str) -> Any:
    """As a person types it."""
    return services.in_currency(amount) if dimension == Dimension.MONEY else amount


@require_GET
@needs("budgets.view")
def budget(request: ConsoleRequest, budget_id: UUID) -> HttpResponse:
    """Context: row (Standing), currency, windows (Excerpt of BudgetWindow, the newest first), edit_form, raise_form (AmountForm),
    end_form (ReasonForm), wrong (edit, raise, end or ""), form (the one that was not accepted), facts, may_manage, may_raise.
    """
    return _page(request, _budget(request, budget_id))


@require_POST
@needs("budgets.manage")
def budget_edit(request: ConsoleRequest, budget_id: UUID) -> HttpResponse:
    """POST amount, reason: another limit from the next call on."""
    found = _budget(request, budget_id)
    form = AmountForm(request.POST, dimension=found.dimension)
    if submit_form(
        form, lambda: services.change_budget(budget_id=budget_id, by=request.principal, **form.cleaned_data)
    ):
        messages.success(request, gettext("The budget is changed. It applies from the next call."))
        return redirect("budget", budget_id)
    return _page(request, found, wrong="edit", form=form)


@require_POST
@needs("budgets.manage")
def budget_raise(request: ConsoleRequest, budget_id: UUID) -> HttpResponse:
    """POST amount, reason: so much more in the window that runs now."""
    found = _budget(request, budget_id)
    form = AmountForm(request.POST, dimension=found.dimension)
    if submit_form(
        form,
        lambda: services.raise_budget_once(
            budget_id=budget_id,
            by_amount=form.cleaned_data["amount"],
            reason=form.cleaned_data["reason"],
            by=request.principal,
        ),
    ):
        told = gettext("The budget is raised until this window ends; the next one has the usual amount.")
        messages.success(request, told)
        return redirect("budget", budget_id)
    return _page(request, found, wrong="raise", form=form)


@require_POST
@needs("budgets.manage")
def budget_end(request: ConsoleRequest, budget_id: UUID) -> HttpResponse:
    """POST reason."""
    found, form = _budget(request, budget_id), ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, found, wrong="end", form=form)
    services.end_budget(budget_id=budget_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The budget has ended. It no longer limits anything."))
    return redirect("budget", budget_id)
