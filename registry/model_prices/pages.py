"""Pages of model prices: what models cost now and later, who has said so, and how a person sets it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from evidence.search.related_facts import facts_about
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import Problem
from llm.prices import PriceDocument
from registry.model_catalogue.pages import describe_models, find_models_of
from registry.model_prices import services
from registry.model_prices.forms import AMOUNT_WORDS, DayPriceForm, DocumentForm
from registry.model_prices.price_tables import get_price_table
from registry.models import ModelPrices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django import forms
    from django.http import HttpResponse

MAX_SHOWN = 200  # of prices, of models and of versions


def mark_in_force(rows: Sequence[dict[str, Any]], today: date, *, of: tuple[str, ...]) -> list[dict[str, Any]]:
    """Each with ``state``: past, now or later. Of those that are of the same, the last that has begun is in force."""
    latest: dict[tuple[str, ...], str] = {}
    for row in rows:
        if date.fromisoformat(row["effective_from"]) <= today:
            same = tuple(row[name] for name in of)
            latest[same] = max(latest.get(same, ""), row["effective_from"])
    found = []
    for row in rows:
        begun = latest.get(tuple(row[name] for name in of), "")
        state = "now" if row["effective_from"] == begun else "past" if row["effective_from"] < begun else "later"
        found.append(row | {"state": state})
    return found


def _describe(row: ModelPrices | None) -> dict[str, Any]:
    document, today = row.document if row is not None else PriceDocument().to_json(), datetime.now(UTC).date()
    prices = mark_in_force(document["prices"][:MAX_SHOWN], today, of=("provider", "model"))
    return {
        "row": row,
        "version": get_price_table(row).version,
        "currency": document["currency"],
        "rates": mark_in_force(document["rates"][:MAX_SHOWN], today, of=()),
        "prices": prices,
        "more": max(0, len(document["prices"]) - MAX_SHOWN),
        "amounts": [name for name in AMOUNT_WORDS if any(name in each for each in prices)],
    }


@require_GET
@needs("budgets.view")
def price_list(request: ConsoleRequest) -> HttpResponse:
    """Context: said ({row, version, currency, rates, prices, more, amounts}), models (as describe_models says), versions (list of
    ModelPrices, the newest first), may_set, facts.
    """
    by = request.principal
    rows = ModelPrices.objects.filter(tenant_id=by.tenant_id).order_by("-number")
    row = rows.first()
    context = {
        "section": "model_prices",
        "said": _describe(row),
        "models": describe_models(find_models_of(by.tenant_id).order_by("name")[:MAX_SHOWN], tenant_id=by.tenant_id),
        "versions": rows.defer("document")[:MAX_SHOWN],
        "may_set": by.may("models.manage"),
        "facts": facts_about(by, row.urn)[::-1] if row is not None else [],
    }
    return render_page(request, "model_prices/price_list.html", context)


@require_GET
@needs("budgets.view")
def price_version(request: ConsoleRequest, number: int) -> HttpResponse:
    """Context: said ({row, version, currency, rates, prices, more, amounts}), number_in_force, facts."""
    by = request.principal
    row = services.find_prices_version(number, tenant_id=by.tenant_id)
    newest = services.find_prices_in_force(by.tenant_id)
    context = {
        "section": "model_prices",
        "said": _describe(row),
        "number_in_force": newest.number if newest else 0,
        "facts": facts_about(by, row.urn)[::-1],
    }
    return render_page(request, "model_prices/price_version.html", context)


def _form_page(request: ConsoleRequest, form: forms.Form, title: str) -> HttpResponse:
    status = 422 if request.method == "POST" else 200
    context = {"section": "model_prices", "form": form, "title": title}
    return render_page(request, "model_prices/price_form.html", context, status=status)


@require_http_methods(["GET", "POST"])
@needs("models.manage")
def price_add(request: ConsoleRequest) -> HttpResponse:
    """Context: form (DayPriceForm, filled in from ?provider= and ?model=). The other prices stay."""
    asked = {name: request.GET[name] for name in ("provider", "model") if name in request.GET}
    form = DayPriceForm(request.POST or None, initial=asked | {"effective_from": datetime.now(UTC).date().isoformat()})
    if request.method == "POST" and form.is_valid():
        try:
            row = services.set_one_price(price=form.price(), reason=form.cleaned_data["reason"], by=request.principal)
        except Problem as problem:
            form.add_findings(problem)
        else:
            _say_set(request, row)
            return redirect("model_prices")
    return _form_page(request, form, gettext("Set a price"))


@require_http_methods(["GET", "POST"])
@needs("models.manage")
def price_document(request: ConsoleRequest) -> HttpResponse:
    """Context: form (DocumentForm, with what is in force)."""
    row = services.find_prices_in_force(request.principal.tenant_id)
    document = row.document if row is not None else PriceDocument().to_json()
    form = DocumentForm(request.POST or None, initial={"document": json.dumps(document, indent=2)})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            row = services.set_model_prices(document=data["document"], reason=data["reason"], by=request.principal)
        except Problem as problem:
            form.add_findings(problem)
        else:
            _say_set(request, row)
            return redirect("model_prices")
    return _form_page(request, form, gettext("Paste a document"))


def _say_set(request: ConsoleRequest, row: ModelPrices) -> None:
    messages.success(
        request, gettext("Version %(number)d of the prices counts from the next call.") % {"number": row.number}
    )
