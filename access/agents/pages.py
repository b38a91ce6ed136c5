"""Pages of agents: agents and their keys in the console. A key's text is shown on the answer that made it, and never again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.agents import services
from access.agents.api import key_state
from access.connections.pages import list_rows
from access.connections.resources import mcp_resource
from access.forms import AgentForm, KeyForm, RotationForm
from access.models import Agent, ApiKey
from access.object_permissions.rules import allowed_on, held_on, object_permission_holders
from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm, submit_form
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse

    from kernel.principal import Principal


def _named(by: Principal, *, agent_id: UUID) -> Agent | None:
    return Agent.objects.filter(pk=agent_id, tenant_id=by.tenant_id).first()


def _of_key(by: Principal, *, key_id: UUID) -> Agent | None:
    return Agent.objects.filter(keys__pk=key_id, tenant_id=by.tenant_id).first()


on_agent, on_key, sees_agent = held_on(_named), held_on(_of_key), held_on(_named, "agents.manage")


@require_GET
@needs("agents.view")
def agents(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Agent with .live, .used_at), may_manage."""
    live = Q(keys__revoked_at=None, keys__expires_at__gt=database_time())
    rows = Agent.objects.filter(tenant_id=request.principal.tenant_id).annotate(
        live=Count("keys", filter=live), used_at=Max("keys__last_used_at")
    )
    context = {
        "section": "agents",
        "page": fetch_page(rows, prefix="agt", after=request.GET.get("after", "")),
        "may_manage": request.principal.may("agents.manage"),
    }
    return render_page(request, "agents/agent_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("agents.manage")
def agent_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (AgentForm)."""
    form = AgentForm(request.POST or None)
    if made := submit_form(form, lambda: services.create_agent(name=form.cleaned_data["name"], by=request.principal)):
        messages.success(
            request, gettext("Agent %(name)s was created. Create a key for it next.") % {"name": made.name}
        )
        return redirect("agent", made.pk)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "agents/agent_form.html", {"section": "agents", "form": form}, status=status)


def _agent(request: ConsoleRequest, agent_id: UUID) -> Agent:
    return Agent.objects.get(pk=agent_id, tenant_id=request.principal.tenant_id)


def _agent_page(
    request: ConsoleRequest, found: Agent, *, form: forms.Form | None = None, wrong: str = "", key: ApiKey | None = None
) -> HttpResponse:
    """``wrong``: which form was not accepted (state, rotate, revoke), with ``key`` for one of a key."""
    rows = ApiKey.objects.filter(agent=found).select_related("replaces")
    page = fetch_page(rows, prefix="key", after=request.GET.get("after", ""))
    context = {
        "section": "agents",
        "agent": found,
        "page": page,
        "keys": [{"key": each, "state": key_state(each), "id": each.lookup} for each in page.rows],
        "form": form or ReasonForm(),
        "reason_form": ReasonForm(),
        "rotation_form": RotationForm(),
        "wrong": wrong,
        "wrong_key": key,
        "facts": facts_about(request.principal, found.wire_id, *(each.wire_id for each in page.rows)),
        "connections": list_rows(request.principal, agent=found),
        "mcp_url": mcp_resource(),
        "may_manage": "agents.manage" in allowed_on(request.principal, found),
        "exceptions": object_permission_holders(found, by=request.principal),
    }
    return render_page(request, "agents/agent_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("agents.view", held=sees_agent)
def agent(request: ConsoleRequest, agent_id: UUID) -> HttpResponse:
    """Context: agent, page (Page of ApiKey), keys (list of {key, state, id}), form, reason_form, rotation_form, wrong, wrong_key,
    facts, may_manage, connections (Excerpt of the rows of access.connections.pages), mcp_url, exceptions (list of {user, name,
    label}: who holds what on this agent alone, when the person may see people).
    """
    return _agent_page(request, _agent(request, agent_id))


@require_POST
@needs("agents.manage", held=on_agent)
def agent_state(request: ConsoleRequest, agent_id: UUID) -> HttpResponse:
    """POST reason: disables an agent that is enabled, and the other way round."""
    found, form = _agent(request, agent_id), ReasonForm(request.POST)
    if not form.is_valid():
        return _agent_page(request, found, form=form, wrong="state")
    change = services.enable_agent if found.disabled_at else services.disable_agent
    changed = change(agent_id=agent_id, reason=form.cleaned_data["reason"], by=request.principal)
    told = (
        gettext("The agent is disabled. All its requests are refused from now on.")
        if changed.disabled_at
        else gettext("The agent is enabled. It can call tools again.")
    )
    messages.success(request, told)
    return redirect("agent", agent_id)


@require_http_methods(["GET", "POST"])
@needs("agents.manage", held=on_agent)
def key_new(request: ConsoleRequest, agent_id: UUID) -> HttpResponse:
    """Context: agent, form (KeyForm); after POST the page with the key."""
    found = _agent(request, agent_id)
    form = KeyForm(request.POST if request.method == "POST" else None)
    if made := submit_form(
        form,
        lambda: services.create_key(
            agent=found,
            by=request.principal,
            scopes=form.cleaned_data["scopes"],
            expires_at=database_time() + timedelta(days=form.cleaned_data["days"]),
            name=form.cleaned_data["name"],
            networks=form.networks_given(),
        ),
    ):
        return _key_page(request, *made)
    context = {"section": "agents", "agent": found, "form": form}
    return render_page(request, "agents/key_form.html", context, status=422 if request.method == "POST" else 200)


def _key_page(request: ConsoleRequest, made: ApiKey, text: str) -> HttpResponse:
    return render_page(request, "agents/key_shown.html", {"section": "agents", "key": made, "text": text})


@require_POST
@needs("agents.manage", held=on_key)
def key_rotate(request: ConsoleRequest, key_id: UUID) -> HttpResponse:
    """POST overlap_days; answers with the page that shows the new key."""
    key = ApiKey.objects.select_related("agent").get(pk=key_id, agent__tenant_id=request.principal.tenant_id)
    form = RotationForm(request.POST)
    if made := submit_form(
        form, lambda: services.rotate_key(key_id=key_id, overlap=form.overlap(), by=request.principal)
    ):
        return _key_page(request, *made)
    return _agent_page(request, key.agent, form=form, wrong="rotate", key=key)


@require_POST
@needs("agents.manage", held=on_key)
def key_revoke(request: ConsoleRequest, key_id: UUID) -> HttpResponse:
    """POST reason."""
    key = ApiKey.objects.select_related("agent").get(pk=key_id, agent__tenant_id=request.principal.tenant_id)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _agent_page(request, key.agent, form=form, wrong="revoke", key=key)
    services.revoke_key(key_id=key_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The key is revoked. Requests with it are refused from now on."))
    return redirect("agent", key.agent_id)
