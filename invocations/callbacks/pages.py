"""Pages of callbacks: endpoints in the console, and what became of each message. A secret is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.agents.pages import on_agent, sees_agent
from access.models import Agent
from access.object_permissions.rules import allowed_on, held_on
from evidence.deliveries.forms import OverlapForm
from evidence.deliveries.pages import render_secret
from evidence.search.related_facts import facts_about
from invocations.callbacks import services
from invocations.callbacks.forms import EndpointForm
from invocations.callbacks.models import CallbackDelivery, CallbackEndpoint
from invocations.callbacks.selectors import NAMES, STATES, filter_deliveries
from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse

    from kernel.principal import Principal


def _of_endpoint(by: Principal, *, endpoint_id: UUID) -> Agent | None:
    return Agent.objects.filter(callback_endpoints__pk=endpoint_id, tenant_id=by.tenant_id).first()


def _of_delivery(by: Principal, *, delivery_id: UUID) -> Agent | None:
    found = CallbackDelivery.objects.filter(pk=delivery_id, tenant_id=by.tenant_id).select_related("endpoint__agent")
    row = found.first()
    return row.endpoint.agent if row else None


on_endpoint, on_delivery = held_on(_of_endpoint), held_on(_of_delivery)
sees_delivery = held_on(_of_delivery, "agents.manage")


def _agent(request: ConsoleRequest, agent_id: UUID) -> Agent:
    return Agent.objects.get(pk=agent_id, tenant_id=request.principal.tenant_id)


def _endpoint(request: ConsoleRequest, endpoint_id: UUID) -> CallbackEndpoint:
    rows = CallbackEndpoint.objects.select_related("agent")
    return rows.get(pk=endpoint_id, tenant_id=request.principal.tenant_id)


def _endpoints_page(
    request: ConsoleRequest,
    agent: Agent,
    *,
    form: forms.Form | None = None,
    wrong: str = "",
    endpoint: CallbackEndpoint | None = None,
) -> HttpResponse:
    """``wrong``: which form was not accepted (rotate, disable), with the ``endpoint`` that it was about."""
    page = fetch_page(CallbackEndpoint.objects.filter(agent=agent), prefix="cbe", after=request.GET.get("after", ""))
    context = {
        "section": "agents",
        "agent": agent,
        "page": page,
        "form": form,
        "reason_form": ReasonForm(),
        "overlap_form": OverlapForm(),
        "wrong": wrong,
        "wrong_endpoint": endpoint,
        "may_manage": "agents.manage" in allowed_on(request.principal, agent),
        "facts": facts_about(request.principal, *(each.wire_id for each in page.rows)),
    }
    return render_page(request, "callbacks/callback_list.html", context, status=422 if wrong else 200)


@require_GET
@needs("agents.view", held=sees_agent)
def callback_list(request: ConsoleRequest, agent_id: UUID) -> HttpResponse:
    """Context: agent, page (Page of CallbackEndpoint), form, reason_form, overlap_form, wrong, wrong_endpoint, may_manage,
    facts.
    """
    return _endpoints_page(request, _agent(request, agent_id))


@require_http_methods(["GET", "POST"])
@needs("agents.manage", held=on_agent)
def callback_new(request: ConsoleRequest, agent_id: UUID) -> HttpResponse:
    """Context: agent, form (EndpointForm); after POST the page with the secret."""
    agent, form = _agent(request, agent_id), EndpointForm(request.POST if request.method == "POST" else None)
    by = request.principal
    if made := submit_form(form, lambda: services.make_endpoint(agent_id=agent_id, by=by, **form.cleaned_data)):
        return _secret_page(request, *made)
    context = {"section": "agents", "agent": agent, "form": form}
    status = 422 if request.method == "POST" else 200
    return render_page(request, "callbacks/callback_form.html", context, status=status)


def _secret_page(request: ConsoleRequest, endpoint: CallbackEndpoint, secret: str) -> HttpResponse:
    agent = endpoint.agent
    trail = [
        (gettext("Agents & keys"), reverse("agents")),
        (agent.name, reverse("agent", args=[agent.pk])),
        (gettext("Callbacks"), reverse("callbacks", args=[agent.pk])),
    ]
    return render_secret(
        request, secret, section="agents", of=gettext("Endpoint"), name=endpoint.name, address=endpoint.url, trail=trail
    )


@require_POST
@needs("agents.manage", held=on_endpoint)
def callback_rotate(request: ConsoleRequest, endpoint_id: UUID) -> HttpResponse:
    """POST overlap_hours; answers with the page that shows the new secret."""
    endpoint, form, by = _endpoint(request, endpoint_id), OverlapForm(request.POST), request.principal
    if made := submit_form(
        form, lambda: services.rotate_secret(endpoint_id=endpoint_id, overlap=form.overlap(), by=by)
    ):
        return _secret_page(request, *made)
    return _endpoints_page(request, endpoint.agent, form=form, wrong="rotate", endpoint=endpoint)


@require_POST
@needs("agents.manage", held=on_endpoint)
def callback_disable(request: ConsoleRequest, endpoint_id: UUID) -> HttpResponse:
    """POST reason."""
    endpoint, form = _endpoint(request, endpoint_id), ReasonForm(request.POST)
    if not form.is_valid():
        return _endpoints_page(request, endpoint.agent, form=form, wrong="disable", endpoint=endpoint)
    services.disable_endpoint(endpoint_id=endpoint_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The endpoint is disabled. No more callbacks are sent to it."))
    return redirect("callbacks", endpoint.agent_id)


@require_GET
@needs("agents.view")
def callback_deliveries(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of CallbackDelivery), filters, states, endpoints, may_manage."""
    filters = {name: request.GET.get(name, "").strip() for name in ("state", *NAMES)}
    rows = filter_deliveries(filters, by=request.principal)
    context = {
        "section": "agents",
        "page": fetch_page(rows, prefix="cbd", after=request.GET.get("after", "")),
        "filters": filters,
        "states": STATES,
        "endpoints": CallbackEndpoint.objects.filter(tenant_id=request.principal.tenant_id)
        .select_related("agent")
        .order_by("agent__name", "name", "-pk"),
        "may_manage": request.principal.may("agents.manage"),
    }
    return render_page(request, "callbacks/callback_delivery_list.html", context, partial="rows")


@require_GET
@needs("agents.view", held=sees_delivery)
def callback_delivery(request: ConsoleRequest, delivery_id: UUID) -> HttpResponse:
    """Context: delivery (with .endpoint.agent, .invocation), tries, facts, may_manage."""
    rows = CallbackDelivery.objects.select_related("endpoint__agent", "invocation")
    row = rows.get(pk=delivery_id, tenant_id=request.principal.tenant_id)
    context = {
        "section": "agents",
        "delivery": row,
        "tries": row.tries.order_by("id"),
        "facts": facts_about(request.principal, row.wire_id),
        "may_manage": row.endpoint.disabled_at is None
        and "agents.manage" in allowed_on(request.principal, row.endpoint.agent),
    }
    return render_page(request, "callbacks/callback_delivery_detail.html", context)


@require_POST
@needs("agents.manage", held=on_delivery)
def callback_again(request: ConsoleRequest, delivery_id: UUID) -> HttpResponse:
    """Send a message again."""
    services.redeliver_callback(delivery_id=delivery_id, by=request.principal)
    messages.success(request, gettext("The message will be sent again within seconds."))
    return redirect("callback_delivery", delivery_id)
