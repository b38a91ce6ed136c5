"""Pages of policies: read, drafted, tried and published in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.models import Agent, PolicyState, PolicyVersion
from access.policies import services
from access.policies.api import filter_policies
from access.policies.compiler import BUILTIN_DOCUMENT
from access.policies.forms import RULE_FORMS, DraftForm, NewDraftForm, PriceForm
from access.policies.impact import previews
from access.policies.language import validate_policy
from access.policies.sentences import describe_rule
from access.policies.text import read_text, write_text
from access.sign_in.adapters import recently_authenticated
from evidence.search.related_facts import facts_about
from invocations.call_costs.services import find_currency
from kernel.components.forms import ReasonForm, fill_form
from kernel.components.sentences import describe_problem, translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.ids import decode
from kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse

OFFERED = 200  # agents
BUILTIN_RULES = {name: part for name, part in BUILTIN_DOCUMENT.items() if name != "note"}
STARTER: dict[str, Any] = {
    "format": 1,
    "rules": [{"id": "all", "effect": "permit", "when": {}, "note": "What a grant gives is permitted."}],
}


def why_not(check: Callable[[], None]) -> str:
    """The sentence of a rule that refuses; empty when it does not."""
    try:
        check()
    except Problem as problem:
        return describe_problem(problem)
    return ""


def describe_rules(document: dict[str, Any], *, currency: str) -> list[dict[str, Any]]:
    """For the table: each rule with its sentence."""
    return [{**rule, "sentence": describe_rule(rule, currency=currency)} for rule in document["rules"]]


@require_GET
@needs("policies.view")
def policies(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of PolicyVersion), filters ({state, layer}), states, layers (what is in force: {label, version or
    None, rules}), may_draft.
    """
    by = request.principal
    rows = PolicyVersion.objects.visible_to(by)
    filters = {name: request.GET.get(name, "") for name in ("state", "layer")}
    currency = find_currency(by.tenant_id)
    hub, tenant = previews.in_force(None), previews.in_force(by.tenant_id)
    context = {
        "section": "policies",
        "page": fetch_page(filter_policies(rows, filters), prefix="pol", after=request.GET.get("after", "")),
        "filters": filters,
        "states": PolicyState.values,
        "hub": hub,
        "hub_rules": describe_rules(hub.document if hub else BUILTIN_DOCUMENT, currency=currency),
        "tenant_policy": tenant,
        "tenant_rules": describe_rules(tenant.document, currency=currency) if tenant else [],
        "may_draft": by.may("policies.draft"),
        "may_hub": by.may("hub.manage"),
    }
    return render_page(request, "policies/policy_list.html", context, partial="rows")


def _seen(request: ConsoleRequest, policy_id: UUID) -> PolicyVersion:
    return PolicyVersion.objects.visible_to(request.principal).get(pk=policy_id)


@require_GET
@needs("policies.view")
def policy(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    return policy_page(request, _seen(request, policy_id))


def policy_page(
    request: ConsoleRequest, version: PolicyVersion, *, form: ReasonForm | None = None, wrong: str = ""
) -> HttpResponse:
    """Context: version, rules (with .sentence), findings, facts, reason_form, wrong (which form failed), kinds (of rule forms),
    and for what may be done: may_change, may_discard, may_roll_back, may_draft, why_not_publish, stale, in_force.
    """
    by = request.principal
    current = previews.in_force(version.tenant_id)
    draft, past = version.state == PolicyState.DRAFT, version.state == PolicyState.SUPERSEDED
    may_draft = by.may("policies.draft")
    context = {
        "section": "policies",
        "version": version,
        "rules": describe_rules(version.document, currency=find_currency(by.tenant_id)),
        "findings": validate_policy(version.document),
        "facts": facts_about(by, version.wire_id),
        "reason_form": form or ReasonForm(),
        "wrong": wrong,
        "kinds": [(kind, form_of.title) for kind, form_of in RULE_FORMS.items()],
        "in_force": current,
        "may_draft": may_draft,
        "may_change": may_draft and not why_not(lambda: services.check_can_change(version, by=by)),
        "may_discard": may_draft and not why_not(lambda: services.check_can_discard(version, by=by)),
        "why_not_publish": why_not_publish(request, version) if draft else "",
        "stale": previews.why_stale(version) if draft else "",
        "why_not_roll_back": why_not_roll_back(request, version, current) if past else "",
    }
    return render_page(request, "policies/policy_detail.html", context, status=422 if wrong else 200)


def why_not_publish(request: ConsoleRequest, version: PolicyVersion) -> str:
    """Why this person cannot put the draft in force; a stale preview is said apart."""
    if not request.principal.may("policies.publish"):
        return gettext("You do not have permission to publish policies.")
    return why_not(lambda: services.check_can_publish(version, by=request.principal))


def why_not_roll_back(request: ConsoleRequest, version: PolicyVersion, current: PolicyVersion | None) -> str:
    if not request.principal.may("policies.publish"):
        return gettext("You do not have permission to publish policies.")
    return why_not(lambda: services.check_can_roll_back(version, current, by=request.principal))


# Drafting.


@require_http_methods(["GET", "POST"])
@needs("policies.draft")
def policy_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (NewDraftForm), findings, source (the version it starts from, or None)."""
    may_hub = request.principal.may("hub.manage")
    hub = may_hub and request.GET.get("layer") == "hub"
    source = _source(request, hub=hub)
    start = source.document if source else BUILTIN_RULES if hub else STARTER
    layer = "hub" if hub or (source and source.tenant_id is None) else "tenant"
    form = NewDraftForm(request.POST or None, may_hub=may_hub, initial={"text": write_text(start), "layer": layer})
    findings: list[Any] = []
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            made = services.draft_policy(
                document=read_text(data["text"]),
                note=data["note"],
                hub=data.get("layer") == "hub",
                by=request.principal,
            )
        except SchemaInvalid as problem:
            findings = problem.details["findings"]
        else:
            messages.success(request, gettext("The draft was saved. It has no effect until it is published."))
            return redirect("policy", made.pk)
    context = {"section": "policies", "form": form, "findings": findings, "source": source, "version": None}
    return render_page(request, "policies/policy_edit.html", context, status=422 if form.is_bound else 200)


def _source(request: ConsoleRequest, *, hub: bool) -> PolicyVersion | None:
    """The version that a draft starts from: the one that was asked for, else what is in force."""
    asked = request.GET.get("from", "")
    if not asked:
        return previews.in_force(None if hub else request.principal.tenant_id)
    try:
        return _seen(request, decode("pol", asked))
    except ValueError as error:
        raise PolicyVersion.DoesNotExist from error


@require_http_methods(["GET", "POST"])
@needs("policies.draft")
def policy_edit(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    """Context: form (DraftForm), findings, version, as_yaml. The text that was typed stays when something is wrong with it."""
    version = _seen(request, policy_id)
    services.check_can_change(version, by=request.principal)
    as_yaml = request.GET.get("as") == "yaml"
    text = write_text(version.document, "yaml" if as_yaml else "json")
    form = DraftForm(request.POST or None, initial={"text": text, "note": version.note})
    findings: list[Any] = []
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            services.change_draft(
                version_id=policy_id, document=read_text(data["text"]), note=data["note"], by=request.principal
            )
        except SchemaInvalid as problem:
            findings = problem.details["findings"]
        else:
            messages.success(request, gettext("The draft was saved. Preview its impact before it is published."))
            return redirect("policy", policy_id)
    context = {"section": "policies", "form": form, "findings": findings, "version": version, "as_yaml": as_yaml}
    return render_page(request, "policies/policy_edit.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@needs("policies.draft")
def policy_rule_new(request: ConsoleRequest, policy_id: UUID, kind: str) -> HttpResponse:
    """Context: form (of RULE_FORMS), kind, title, version, agents (to choose from). Adds the rules that the form stands for to the
    draft. POST check: only says what the expression matches.
    """
    version, currency = _seen(request, policy_id), find_currency(request.principal.tenant_id)
    services.check_can_change(version, by=request.principal)
    if kind not in RULE_FORMS:
        raise PolicyVersion.DoesNotExist
    form = fill_form(RULE_FORMS[kind], request)
    if isinstance(form, PriceForm):
        form.name_currency(currency)
    if form.is_valid():
        rules = version.document["rules"]
        added = form.rules({rule["id"] for rule in rules})
        try:
            services.change_draft(
                version_id=policy_id, document={**version.document, "rules": [*rules, *added]}, by=request.principal
            )
        except SchemaInvalid as problem:
            _add_findings(form, problem)
        else:
            messages.success(request, " ".join(describe_rule(rule, currency=currency) for rule in added))
            return redirect("policy", policy_id)
    context = {
        "section": "policies",
        "form": form,
        "kind": kind,
        "title": form.title,
        "version": version,
        "agents": Agent.objects.filter(tenant_id=request.principal.tenant_id).order_by("name")[:OFFERED],
    }
    return render_page(request, "policies/policy_rule.html", context, status=422 if form.is_bound else 200)


def _add_findings(form: forms.Form, problem: SchemaInvalid) -> None:
    """At the field that the pointer ends in or leads through; the rest above the form."""
    for finding in problem.details["findings"]:
        field = next((part for part in finding["pointer"].split("/") if part in form.fields), None)
        form.add_error(field, f"{translate_sentence(finding['message'])} {translate_sentence(finding['fix'])}")


@require_POST
@needs("policies.draft")
def policy_rule_remove(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    """POST rule: the id of the rule that goes."""
    version = _seen(request, policy_id)
    gone = request.POST.get("rule", "")
    rules = [rule for rule in version.document["rules"] if rule["id"] != gone]
    services.change_draft(version_id=policy_id, document={**version.document, "rules": rules}, by=request.principal)
    messages.success(request, gettext("Rule %(id)s was removed from the draft.") % {"id": gone})
    return redirect("policy", policy_id)


@require_POST
@needs("policies.draft")
def policy_discard(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return policy_page(request, _seen(request, policy_id), form=form, wrong="discard")
    services.discard_draft(version_id=policy_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The draft was discarded."))
    return redirect("policies")


# Deciding.


@require_POST
@needs("policies.publish")
@recently_authenticated
def policy_roll_back(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return policy_page(request, _seen(request, policy_id), form=form, wrong="roll-back")
    done = services.roll_back_policy(version_id=policy_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("%(label)s is in force again from the next call on.") % {"label": done.label})
    return redirect("policy", policy_id)
