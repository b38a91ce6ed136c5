"""Pages of clients that are entered by hand. A secret is shown on the answer that made it, and never again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.clients import services
from access.clients.forms import ClientForm
from access.connections.resources import mcp_resource
from access.oauth.authorization_requests import PATH
from access.oauth.metadata import TOKEN
from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from access.models import EnteredClient


def _client_list(request: ConsoleRequest, *, form: ReasonForm | None = None, wrong: UUID | None = None) -> HttpResponse:
    by = request.principal
    page = fetch_page(services.list_clients(by=by), prefix="cli", after=request.GET.get("after", ""))
    open_now = services.count_connections(page.rows, by=by)
    context = {
        "section": "connections",
        "page": page,
        "rows": [{"client": each, "connections": open_now.get(each.client_id, 0)} for each in page.rows],
        "form": form or ReasonForm(),
        "wrong": services.list_clients(by=by).get(pk=wrong) if wrong else None,
    }
    return render_page(request, "clients/client_list.html", context, status=422 if wrong else 200)


@require_GET
@needs("agents.manage")
def clients(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of EnteredClient), rows (list of {client, connections}), form, wrong (whose removal was not accepted)."""
    return _client_list(request)


@require_http_methods(["GET", "POST"])
@needs("agents.manage")
def client_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ClientForm); after POST the page with the client id and the secret."""
    form = ClientForm(request.POST if request.method == "POST" else None)
    if made := submit_form(form, lambda: services.enter_client(**form.cleaned_data, by=request.principal)):
        return _client_page(request, *made)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "clients/client_form.html", {"section": "connections", "form": form}, status=status)


def _client_page(request: ConsoleRequest, made: EnteredClient, secret: str) -> HttpResponse:
    context = {
        "section": "connections",
        "client": made,
        "secret": secret,
        "mcp_url": mcp_resource(),
        "authorize_url": settings.TOOLHUB_PUBLIC_URL + PATH,
        "token_url": settings.TOOLHUB_PUBLIC_URL + TOKEN,
    }
    return render_page(request, "clients/client_shown.html", context)


@require_POST
@needs("agents.manage")
def client_remove(request: ConsoleRequest, client_id: UUID) -> HttpResponse:
    """POST reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _client_list(request, form=form, wrong=client_id)
    services.remove_client(client_id=client_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The program is removed, and its connections are ended."))
    return redirect("clients")
