"""Pages of issuers: identity providers, and the subjects of their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.connections.resources import tenant_mcp_resource
from access.forms import AssertionRuleForm, IdentityForm, IssuerForm, IssuerKeysForm, SubjectForm
from access.issuers import assertion_rules, services
from access.models import AgentIdentity, AssertionRule, Connection, TrustedIssuer
from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm, add_problem, submit_form
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page, fetch_page_by_name
from kernel.problems import Problem

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse


@require_GET
@needs("issuers.manage")
def issuers(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of TrustedIssuer), audience (what tokens should name)."""
    rows = TrustedIssuer.objects.filter(tenant_id=request.principal.tenant_id)
    context = {"section": "issuers", "page": fetch_page(rows, prefix="iss", after=request.GET.get("after", ""))}
    return render_page(request, "issuers/issuer_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("issuers.manage")
def issuer_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (IssuerForm), issuer (None), mcp_url (the tenant's own MCP address)."""
    usual = {"audience": services.usual_audience(request.tenant.wire_id)}
    form = IssuerForm(request.POST if request.method == "POST" else None, initial=usual)
    if made := submit_form(form, lambda: services.trust_issuer(**form.cleaned_data, by=request.principal)):
        messages.success(request, gettext("The provider is trusted. Map its subjects to agents next."))
        return redirect("issuer", made.pk)
    return _issuer_form(request, form)


def _issuer_form(request: ConsoleRequest, form: forms.Form, found: TrustedIssuer | None = None) -> HttpResponse:
    context = {
        "section": "issuers",
        "form": form,
        "issuer": found,
        "mcp_url": tenant_mcp_resource(request.tenant.slug),
    }
    status = 422 if request.method == "POST" else 200
    return render_page(request, "issuers/issuer_form.html", context, status=status)


def _issuer(request: ConsoleRequest, issuer_id: UUID) -> TrustedIssuer:
    return TrustedIssuer.objects.get(pk=issuer_id, tenant_id=request.principal.tenant_id)


@require_http_methods(["GET", "POST"])
@needs("issuers.manage")
def issuer_edit(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """Context: form (IssuerKeysForm), issuer, mcp_url. An issuer that is not trusted is trusted again with this."""
    found = _issuer(request, issuer_id)
    now = {"audience": found.audience, "jwks_url": found.jwks_url, "jwks": found.jwks}
    form = IssuerKeysForm(request.POST if request.method == "POST" else None, initial=now)
    if request.method == "POST" and form.is_valid():
        try:
            if found.disabled_at:
                services.trust_issuer(issuer=found.issuer, **form.cleaned_data, by=request.principal)
            else:
                services.change_issuer(issuer_id=issuer_id, **form.cleaned_data, by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("Changed. It applies from the next request."))
            return redirect("issuer", issuer_id)
    return _issuer_form(request, form, found)


def _build_rule_form(request: ConsoleRequest, rule: AssertionRule | None, data: Any = None) -> AssertionRuleForm:
    now: dict[str, Any] = {}
    if rule is not None:
        now = {"agent": rule.agent_id, "scopes": rule.scopes, "token_minutes": rule.token_minutes}
        now["tools"] = "\n".join(rule.tools or [])
    longest = assertion_rules.longest_minutes()
    return AssertionRuleForm(data, initial=now, prefix="rule", by=request.principal, longest=longest)


def _issuer_page(
    request: ConsoleRequest, found: TrustedIssuer, *, form: forms.Form | None = None, wrong: str = ""
) -> HttpResponse:
    rule = AssertionRule.objects.select_related("agent").filter(issuer=found).first()
    context = {
        "section": "issuers",
        "issuer": found,
        "rule": rule,
        "rule_form": form if wrong == "rule" else _build_rule_form(request, rule),
        "may_vouch": assertion_rules.may_vouch(found),
        "connections": Connection.objects.live(database_time()).filter(issuer=found).count(),
        "page": fetch_page_by_name(
            AgentIdentity.objects.filter(issuer=found).select_related("agent"),
            name="subject",
            after=request.GET.get("after", ""),
        ),
        "subject_form": form if wrong == "subject" else SubjectForm(by=request.principal),
        "form": form if wrong == "distrust" else ReasonForm(),
        "wrong": wrong,
        "is_of_mcp": found.audience == tenant_mcp_resource(request.tenant.slug),
        "facts": facts_about(request.principal, found.wire_id),
    }
    return render_page(request, "issuers/issuer_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("issuers.manage")
def issuer(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """Context: issuer, page (of AgentIdentity, by their subjects), subject_form, form, wrong, is_of_mcp (programs of the tenant are
    sent to it), facts; rule (AssertionRule or None), rule_form, may_vouch (whether people sign in here with it), connections (how many
    it has opened).
    """
    return _issuer_page(request, _issuer(request, issuer_id))


@require_POST
@needs("issuers.manage")
def issuer_distrust(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """POST reason."""
    found, form = _issuer(request, issuer_id), ReasonForm(request.POST)
    if not form.is_valid():
        return _issuer_page(request, found, form=form, wrong="distrust")
    services.distrust_issuer(issuer_id=issuer_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("Its tokens are refused from the next request on."))
    return redirect("issuer", issuer_id)


@require_POST
@needs("issuers.manage")
def issuer_rule_set(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """POST agent, scopes, tools and token_minutes, each as rule-…"""
    found = _issuer(request, issuer_id)
    form = _build_rule_form(request, None, request.POST)

    def set_rule() -> TrustedIssuer:
        said: dict[str, Any] = form.cleaned_data
        return assertion_rules.set_assertion_rule(
            issuer_id=issuer_id,
            agent_id=said["agent"].pk,
            scopes=said["scopes"],
            tools=said["tools"],
            token_minutes=said["token_minutes"],
            by=request.principal,
        )

    if submit_form(form, set_rule) is None:
        return _issuer_page(request, found, form=form, wrong="rule")
    messages.success(request, gettext("The provider may vouch for its people, as far as this."))
    return redirect("issuer", issuer_id)


@require_POST
@needs("issuers.manage")
def issuer_rule_end(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """POST: it vouches for nobody any more."""
    assertion_rules.end_assertion_rule(issuer_id=issuer_id, by=request.principal)
    messages.success(request, gettext("The provider vouches for nobody any more. What it has opened is ended."))
    return redirect("issuer", issuer_id)


@require_POST
@needs("issuers.manage")
def issuer_subject_add(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """POST subject, agent and scopes."""
    found, form = _issuer(request, issuer_id), SubjectForm(request.POST, by=request.principal)
    if form.is_valid():
        data: dict[str, Any] = form.cleaned_data
        try:
            services.map_identity(
                issuer_id=issuer_id,
                subject=data["subject"],
                agent_id=data["agent"].pk,
                scopes=data["scopes"],
                by=request.principal,
            )
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The subject was mapped to %(agent)s.") % {"agent": data["agent"].name})
            return redirect("issuer", issuer_id)
    return _issuer_page(request, found, form=form, wrong="subject")


@require_POST
@needs("issuers.manage")
def issuer_subject_remove(request: ConsoleRequest, issuer_id: UUID) -> HttpResponse:
    """POST identity."""
    found, form = _issuer(request, issuer_id), IdentityForm(request.POST)
    if not form.is_valid():
        return _issuer_page(request, found, wrong="identity")
    services.unmap_identity(identity_id=form.cleaned_data["identity"], by=request.principal)
    messages.success(request, gettext("The mapping was removed."))
    return redirect("issuer", issuer_id)
