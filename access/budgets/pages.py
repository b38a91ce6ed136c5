"""Pages of budgets: how full they are; setting, raising and ending them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.budgets import services
from access.budgets.forms import DIMENSION_WORDS, SCOPE_WORDS, AmountForm, BudgetForm
from access.budgets.selectors import STATES, filter_by_state, latest_windows, load_budget_statuses
from access.models import Agent, Budget, BudgetScope, Dimension
from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm, submit_form
from kernel.components.sentences import translate_sentence
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse

FILTERS = {"state": STATES, "scope": BudgetScope.values, "dimension": Dimension.values}


@require_GET
@needs("budgets.view")
def budgets(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Budget), rows (list of Standing), filters ({state, scope, dimension, agent}), states, scopes,
    dimensions, agents, may_manage.
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
    }
    return render_page(request, "budgets/budget_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("budgets.manage")
def budget_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (BudgetForm, filled in from ?scope=, ?tool= and ?dimension=)."""
    asked = {name: request.GET[name] for name in ("scope", "tool", "dimension") if name in request.GET}
    form = BudgetForm(request.POST or None, by=request.principal, initial=asked)
    if made := submit_form(form, lambda: services.set_budget(by=request.principal, **form.terms())):
        messages.success(request, gettext("The budget is set. It applies from the next call."))
        return redirect("budget", made.pk)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "budgets/budget_form.html", {"section": "budgets", "form": form}, status=status)


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
    """Context: row (Standing), windows (list of BudgetWindow, the newest first), edit_form, raise_form (AmountForm), end_form
    (ReasonForm), wrong (edit, raise, end or ""), form (the one that was not accepted), facts, may_manage, may_raise.
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
