"""Pages of impact: what publishing a draft would change, for people who decide on it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.models import PolicyState, PolicyVersion
from access.policies import services
from access.policies.conditions import build_condition, iter_tests
from access.policies.forms import PreviewForm, PublishForm
from access.policies.impact import previews
from access.policies.impact.analysis import Shift
from access.policies.language import denies_everything
from access.policies.pages import why_not_publish
from access.policies.sentences import describe_witness, shift_sentence
from access.sign_in.adapters import recently_authenticated
from invocations.call_costs.services import find_currency
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.ids import decode

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


TELLING = 20  # fewer calls say little of all that there can be


def _shifts(found: dict[str, Any], *documents: dict[str, Any], currency: str) -> list[dict[str, Any]]:
    """Each with its sentence, and of its witness what the rules behind it ask about."""
    asked = {rule["id"]: _asked(rule) for document in documents for rule in document["rules"]}
    rows = []
    for each in found["shifts"]:
        shift = Shift(**each)
        names = {"tool"}.union(*(asked.get(id, set()) for id in (*shift.old_rules, *shift.new_rules)))
        seen = {name: value for name, value in shift.witness.items() if name in names}
        sentence = shift_sentence(shift, currency=currency)
        rows.append({"shift": shift, "sentence": sentence, "witness": describe_witness(seen)})
    return rows


def _asked(rule: dict[str, Any]) -> set[str]:
    return {test.attribute for test in iter_tests(build_condition(rule.get("when", {})))}


def _linked(groups: list[dict[str, Any]], tenant: str) -> list[dict[str, Any]]:
    """Each example with the call it is, where the reader's tenant made it; the rules that one side has and the other not."""
    return [
        {
            **group,
            "then": sorted(set(group["old"]) - set(group["new"])),
            "now": sorted(set(group["new"]) - set(group["old"])),
            "examples": [
                {**each, "pk": decode("inv", each["invocation"]) if each["tenant"] == tenant else None}
                for each in group["examples"]
            ],
        }
        for group in groups
    ]


@require_GET
@needs("policies.view")
def policy_impact(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    """Context: version, found (the preview as it is kept, or None), shifts, groups, stale, form (PreviewForm), publish_form,
    seen (digest of the draft and the preview), denies_all (every call), first_at and last_at of the calls, before (what is in force
    and would be followed), why_not_publish, may_preview.
    """
    version = PolicyVersion.objects.visible_to(request.principal).get(pk=policy_id)
    return _impact_page(request, version, PreviewForm())


def _denies_all(version: PolicyVersion) -> bool:
    """By its rules, or as far as past calls show."""
    found = version.simulation
    tried = bool(found and found["calls"] >= TELLING and found["counts"].get("now_denied") == found["calls"])
    return tried or denies_everything(version.document)


def _impact_page(
    request: ConsoleRequest, version: PolicyVersion, form: PreviewForm, publish_form: PublishForm | None = None
) -> HttpResponse:
    by = request.principal
    denies_all = _denies_all(version)
    publish_form = publish_form or PublishForm(denies_all=denies_all)
    draft = version.state == PolicyState.DRAFT
    own = version.tenant_id == by.tenant_id or by.may("hub.manage")
    found = version.simulation if own else None
    before, currency = previews.in_force(version.tenant_id), find_currency(by.tenant_id)
    context = {
        "section": "policies",
        "version": version,
        "found": found,
        "shifts": _shifts(found["analysis"], version.document, previews.document_before(version), currency=currency)
        if found
        else [],
        "groups": _linked(found["groups"], request.tenant.wire_id) if found else [],
        "first_at": datetime.fromisoformat(found["first_at"]) if found and found["calls"] else None,
        "last_at": datetime.fromisoformat(found["last_at"]) if found and found["calls"] else None,
        "stale": previews.why_stale(version) if draft else "",
        "before": before if before != version else None,
        "form": form,
        "publish_form": publish_form,
        "seen": previews.compute_preview_digest(version),
        "denies_all": denies_all,
        "draft": draft,
        "may_preview": draft and own and by.may("policies.draft"),
        "why_not_publish": why_not_publish(request, version) if draft else "",
    }
    return render_page(
        request,
        "impact/policy_impact.html",
        context,
        partial="impact",
        status=422 if form.errors or publish_form.errors else 200,
    )


@require_POST
@needs("policies.draft")
def policy_preview(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    """POST calls: how many of the last calls the draft is tried on."""
    form = PreviewForm(request.POST)
    if not form.is_valid():
        version = PolicyVersion.objects.visible_to(request.principal).get(pk=policy_id)
        return _impact_page(request, version, form)
    services.simulate_policy(version_id=policy_id, calls=form.cleaned_data["calls"], by=request.principal)
    return redirect("policy_impact", policy_id)


@require_POST
@needs("policies.publish")
@recently_authenticated
def policy_publish(request: ConsoleRequest, policy_id: UUID) -> HttpResponse:
    """POST reason, seen, and acknowledged where it denies every call: the note of who publishes, below the figures that they saw."""
    version = PolicyVersion.objects.visible_to(request.principal).get(pk=policy_id)
    services.check_can_publish(version, by=request.principal)
    services.check_preview_is_fresh(version)
    form = PublishForm(request.POST, denies_all=_denies_all(version))
    if not form.is_valid():
        return _impact_page(request, version, PreviewForm(), form)
    said = form.cleaned_data
    done = services.publish_policy(version_id=policy_id, reason=said["reason"], seen=said["seen"], by=request.principal)
    messages.success(request, gettext("%(label)s is in force from the next call on.") % {"label": done.label})
    return redirect("policy", policy_id)
