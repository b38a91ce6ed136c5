"""Pages of reviews: how people submit versions and decide about them in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.object_permissions.rules import allowed_on
from invocations.replays.services import may_try_unreviewed
from invocations.replays.version_impacts import list_triable_calls, recall_version_impact
from invocations.trials.answers import read_trial
from invocations.trials.services import list_last_trials, list_own_trials
from kernel.components.diffs import diff_documents
from kernel.components.forms import add_problem
from kernel.components.sentences import translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.http.parsers import read_json
from kernel.problems import Problem, SchemaInvalid
from registry.forms import EnableForm, ReviewForm, StageForm, SubmitForm
from registry.models import Decision, ToolState, ToolVersion, VersionState
from registry.object_permissions import on_version
from registry.problems import ManifestInvalid, WrongBump
from registry.reviews import services as reviews
from registry.versions import bump, services
from registry.versions.presentation import shown_changes, shown_dependencies, shown_file_sharers, shown_time_limit
from unitools.changes import find_worst_risk, is_breaking
from unitools.checks import ManifestFinding

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def tool_submit(request: ConsoleRequest) -> HttpResponse:
    """Context: form (SubmitForm), findings (list of {pointer, rule, message, fix, severity})."""
    form = SubmitForm(request.POST or None, request.FILES or None)
    findings: list[dict[str, str]] = []
    if request.method == "POST" and form.is_valid():
        raw = form.raw()
        try:
            version = services.submit_version(document=read_json(raw), by=request.principal)
        except (ManifestInvalid, WrongBump) as problem:
            findings = problem.details["findings"]
            form.add_error(None, translate_sentence(problem.detail))
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("Submitted. Another person must review it."))
            return (
                redirect("review", version.pk)
                if "tools.review" in allowed_on(request.principal, version.tool)
                else redirect("tool_versions", version.tool.name)
            )
        if form.cleaned_data.get("file") is not None:  # a browser does not send a file twice: keep what was in it
            kept = request.POST.copy()
            kept["text"] = raw.decode("utf-8", "replace")
            form.data = kept
    context = {"section": "submit", "form": form, "findings": findings}
    return render_page(
        request, "reviews/submit.html", context, partial="submit-panel", status=422 if form.is_bound else 200
    )


@require_GET
@needs("tools.review")
def review_queue(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of ToolVersion with .tool), filters ({state}), states, me (wire id)."""
    state = request.GET.get("state", VersionState.SUBMITTED)
    rows = ToolVersion.objects.filter(tool__tenant_id=request.principal.tenant_id).select_related("tool")
    if state:
        if state not in VersionState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(review_state=state)
    context = {
        "section": "reviews",
        "page": fetch_page(rows, prefix="tvn", after=request.GET.get("after", "")),
        "filters": {"state": state},
        "states": VersionState.choices,
        "me": request.principal.id,
    }
    return render_page(request, "reviews/review_list.html", context, partial="rows")


def _review_page(
    request: ConsoleRequest, version: ToolVersion, chosen: dict[str, Any] | None = None, problem: Problem | None = None
) -> HttpResponse:
    try:
        reviews.check_can_review(version, by=request.principal)
        why_not = ""
    except Problem as refused:
        why_not = translate_sentence(refused.detail)
    base, changes = bump.changes_now(version)
    form = ReviewForm(chosen, changes=changes)
    if problem is not None:
        form.is_valid()
        add_problem(form, problem)
    acknowledged = set(form["acknowledged"].value() or []) if form.is_bound else set()
    own_trial = list_own_trials(version, by=request.principal).select_related("version").order_by("-pk").first()
    trials = list_last_trials(version, by=request.principal)
    context = {
        "section": "reviews",
        "version": version,
        "manifest": version.view,
        "shares_files_with": shown_file_sharers(version),
        "time_limit": shown_time_limit(version, tenant_id=request.principal.tenant_id),
        "base": base,
        "wrong_bump": _wrong_bump(version, base),
        "changes": shown_changes(changes, acknowledged=acknowledged),
        "dependencies": shown_dependencies(version),
        "may_operate": "tools.operate" in allowed_on(request.principal, version.tool),
        "may_try": request.principal.may("playground.use"),
        "worst_risk": find_worst_risk(changes),
        "is_breaking": is_breaking(changes),
        "impact": recall_version_impact(version, by=request.principal)
        if request.principal.may("invocations.view")
        and (version.review_state == VersionState.SUBMITTED or _may_enable(request, version))
        else None,
        "triable": list_triable_calls(version, by=request.principal)
        if version.review_state == VersionState.SUBMITTED
        and request.principal.may("invocations.replay")
        and may_try_unreviewed(version, by=request.principal)
        else None,
        "may_write_trial": version.review_state == VersionState.SUBMITTED
        and may_try_unreviewed(version, by=request.principal),
        "trials": trials,
        "works": not all(each.is_final for each in trials),
        "answer": read_trial(own_trial, by=request.principal) if own_trial is not None else None,
        "to_acknowledge": len(reviews.changes_to_acknowledge(changes)),
        "diff": diff_documents(base.manifest if base else None, version.manifest),
        "warnings": [ManifestFinding(**each) for each in version.warnings],
        "form": form,
        "why_not": why_not,
        "approvals_missing": services.approvals_missing(version),
        "reviews": version.reviews.order_by("pk"),
        "may_enable": _may_enable(request, version),
        "may_stage": _may_enable(request, version) and version.tool.state == ToolState.ENABLED,
        "enable_form": EnableForm(),
        "stage_form": StageForm(),
    }
    return render_page(
        request, "reviews/review_detail.html", context, partial="review-panel", status=422 if form.errors else 200
    )


def _may_enable(request: ConsoleRequest, version: ToolVersion) -> bool:
    return (
        "tools.operate" in allowed_on(request.principal, version.tool)
        and version.review_state == VersionState.APPROVED
        and version.yanked_at is None
        and version.tool.current_id != version.pk
    )


def _wrong_bump(version: ToolVersion, base: ToolVersion | None) -> str:
    """What was approved since the submission can make its number wrong."""
    if version.review_state != VersionState.SUBMITTED:
        return ""
    try:
        bump.check_bump(base, version.manifest)
    except WrongBump as problem:
        return translate_sentence(problem.detail)
    return ""


def _version(request: ConsoleRequest, version_id: UUID) -> ToolVersion:
    rows = ToolVersion.objects.select_related("tool__current", "base")
    return rows.get(pk=version_id, tool__tenant_id=request.principal.tenant_id)


@require_GET
@needs("tools.review", held=on_version)
def review(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """Context: version (with .tool), manifest (Manifest view), shares_files_with (names of tools), base (ToolVersion compared with,
    or None), changes and
    dependencies (from registry.versions.presentation), to_acknowledge (how many of the changes), wrong_bump (sentence or
    ""), diff (Diff for
    the `diff` tag), warnings (list of Finding), form (ReviewForm), why_not (sentence or ""), approvals_missing (int), reviews
    (list of Review), worst_risk (of the changes, or ""), is_breaking, impact
    (VersionImpact; None: it is decided, or one may not see calls), triable (calls to try it with, or None),
    may_write_trial (with arguments of one's own), trials (the last ones, Replays), works (some of
    them have no end yet),
    answer (TrialAnswer of the person's newest, or None),
    may_operate, may_try, may_enable, may_stage, enable_form, stage_form.
    """
    return _review_page(request, _version(request, version_id))


@require_POST
@needs("tools.review", held=on_version)
def review_decide(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """POST decision (approve, refuse), note, and acknowledged: the id of each risky change that was seen."""
    version = _version(request, version_id)
    form = ReviewForm(request.POST, changes=bump.changes_now(version)[1])
    if not form.is_valid():
        return _review_page(request, version, request.POST)
    decision = Decision(form.cleaned_data["decision"])
    try:
        services.review_version(
            version_id=version_id,
            decision=decision,
            note=form.cleaned_data["note"],
            acknowledged=form.cleaned_data["acknowledged"],
            by=request.principal,
        )
    except Problem as problem:
        if not problem.details.get("findings"):
            raise
        return _review_page(request, version, request.POST, problem)
    told = gettext("Approved.") if decision is Decision.APPROVE else gettext("Refused.")
    messages.success(request, told + " " + gettext("Your decision is on record."))
    return redirect("review", version_id)
