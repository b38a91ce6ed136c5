"""How do people sign in, and give grants and decide on consents in the console?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access import consents as consent_services
from access import services
from access.forms import DecisionForm, GrantForm, ReasonForm
from access.middleware import choose_tenant
from access.models import Agent, Consent, ConsentState, Grant
from evidence.models import Fact
from toolhub.kernel.console import ConsoleRequest, needs, public, render_page
from toolhub.kernel.forms import add_problem
from toolhub.kernel.pagination import page_of
from toolhub.kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

DECISIONS = {
    "approve": consent_services.approve_consent,
    "deny": consent_services.deny_consent,
    "revoke": consent_services.revoke_consent,
}


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
@public
def sign_in(request: HttpRequest) -> HttpResponse:
    """Context: form, next."""
    to = request.POST.get("next", request.GET.get("next", ""))
    if not url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure()):
        to = "/"
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return HttpResponseRedirect(to)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "access/sign_in.html", {"form": form, "next": to}, status=status)


@require_POST
@public
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign_in")


@require_POST
@public
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Only to a tenant that the person belongs to; anything else is not found."""
    if request.user.is_authenticated:
        choose_tenant(request, request.POST.get("tenant", ""))
    return redirect("overview")


@require_GET
@needs("grants.view")
def grants(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Grant with .agent), states, agents (for the filters), filters ({state, agent, q}), may_give."""
    filters = {name: request.GET.get(name, "") for name in ("state", "agent", "q")}
    rows = Grant.objects.visible_to(request.principal).select_related("agent")
    now = timezone.now()
    match filters["state"]:
        case "active":
            rows = rows.in_force(now)
        case "revoked":
            rows = rows.filter(revoked_at__isnull=False)
        case "expired":
            rows = rows.filter(revoked_at=None, expires_at__lte=now)
        case "":
            pass
        case _:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
    if filters["agent"]:
        rows = rows.filter(agent__name=filters["agent"])
    if filters["q"]:
        rows = rows.filter(tools__icontains=filters["q"])
    context = {
        "section": "grants",
        "page": page_of(rows, prefix="grt", after=request.GET.get("after", "")),
        "filters": filters,
        "states": ["active", "revoked", "expired"],
        "agents": Agent.objects.filter(tenant_id=request.principal.tenant_id).order_by("name"),
        "may_give": request.principal.may("grants.give"),
    }
    return render_page(request, "access/grant_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("grants.give")
def grant_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (GrantForm)."""
    form = GrantForm(request.POST or None, by=request.principal, initial={"tools": request.GET.get("tools", "")})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            given = services.give_grant(
                agent_id=data["agent"].pk,
                tools=data["tools"],
                reason=data["reason"],
                calls_limit=data["calls_limit"],
                expires_at=data["expires_at"],
                by=request.principal,
            )
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(
                request,
                gettext("%(agent)s may now call %(tools)s.") % {"agent": given.agent.name, "tools": given.tools},
            )
            return redirect("grant", given.pk)
    return render_page(
        request, "access/grant_form.html", {"section": "grants", "form": form}, status=422 if form.is_bound else 200
    )


@require_GET
@needs("grants.view")
def grant(request: ConsoleRequest, grant_id: UUID) -> HttpResponse:
    """Context: grant, form (ReasonForm), facts (list of Fact), may_give."""
    found = Grant.objects.visible_to(request.principal).select_related("agent").get(pk=grant_id)
    return _grant_page(request, found, ReasonForm())


def _grant_page(request: ConsoleRequest, found: Grant, form: ReasonForm) -> HttpResponse:
    context = {
        "section": "grants",
        "grant": found,
        "form": form,
        "facts": Fact.objects.visible_to(request.principal).filter(subject=found.wire_id).order_by("id"),
        "may_give": request.principal.may("grants.give"),
    }
    return render_page(request, "access/grant_detail.html", context, status=422 if form.errors else 200)


@require_POST
@needs("grants.give")
def grant_revoke(request: ConsoleRequest, grant_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if form.is_valid():
        services.revoke_grant(grant_id=grant_id, reason=form.cleaned_data["reason"], by=request.principal)
        messages.success(request, gettext("The grant is revoked. It stops counting with the next call."))
        return redirect("grant", grant_id)
    return _grant_page(
        request, Grant.objects.visible_to(request.principal).select_related("agent").get(pk=grant_id), form
    )


@require_GET
@needs("consents.view")
def consents(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Consent with .agent), filters ({state, tool}), states."""
    filters = {name: request.GET.get(name, "") for name in ("state", "tool")}
    rows = Consent.objects.visible_to(request.principal).select_related("agent")
    if filters["state"]:
        if filters["state"] not in ConsentState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(state=filters["state"])
    if filters["tool"]:
        rows = rows.filter(tool__icontains=filters["tool"])
    context = {
        "section": "consents",
        "page": page_of(rows, prefix="cns", after=request.GET.get("after", "")),
        "filters": filters,
        "states": ConsentState.choices,
    }
    return render_page(request, "access/consent_list.html", context, partial="rows")


def _consent_page(request: ConsoleRequest, found: Consent, form: DecisionForm) -> HttpResponse:
    try:
        consent_services.check_can_decide(found, by=request.principal)
        why_not = (
            ""
            if request.principal.may("consents.decide")
            else gettext("You do not hold the permission to decide on consents.")
        )
    except Problem as problem:
        why_not = problem.detail
    state = found.shown_state
    context = {
        "section": "consents",
        "consent": found,
        "form": form,
        "why_not": why_not,
        "may_approve": state == ConsentState.REQUESTED and not why_not,
        "may_revoke": state == ConsentState.APPROVED and not why_not,
        "facts": Fact.objects.visible_to(request.principal).filter(subject=found.wire_id).order_by("id"),
    }
    return render_page(
        request, "access/consent_detail.html", context, partial="decision-panel", status=422 if form.errors else 200
    )


@require_GET
@needs("consents.view")
def consent(request: ConsoleRequest, consent_id: UUID) -> HttpResponse:
    """Context: consent (with .agent, .shown_state), form (DecisionForm), why_not (sentence or ""), may_approve, may_revoke, facts."""
    found = Consent.objects.visible_to(request.principal).select_related("agent").get(pk=consent_id)
    return _consent_page(request, found, DecisionForm())


@require_POST
@needs("consents.decide")
def consent_decide(request: ConsoleRequest, consent_id: UUID) -> HttpResponse:
    """POST decision (approve, deny, revoke) and reason."""
    form = DecisionForm(request.POST)
    found = Consent.objects.visible_to(request.principal).select_related("agent").get(pk=consent_id)
    if not form.is_valid():
        return _consent_page(request, found, form)
    done = DECISIONS[form.cleaned_data["decision"]](
        consent_id=consent_id, reason=form.cleaned_data["reason"], by=request.principal
    )
    told = {"approved": gettext("Approved."), "denied": gettext("Denied."), "revoked": gettext("Revoked.")}
    messages.success(request, told[done.state] + " " + gettext("Your decision and its reason are on record."))
    return redirect("consent", consent_id)
