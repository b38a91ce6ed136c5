"""How do people browse, submit, review and switch tools in the console?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.models import Grant
from evidence.models import Fact
from registry import selectors, services
from registry.checks import Finding
from registry.forms import DeprecateForm, EnableForm, ReviewForm, StateForm, SubmitForm
from registry.models import TRANSITIONS, Decision, Tool, ToolState, ToolVersion, VersionState
from registry.problems import ManifestInvalid
from toolhub.kernel.console import ConsoleRequest, needs, render_page
from toolhub.kernel.diffing import diff_documents
from toolhub.kernel.forms import add_problem
from toolhub.kernel.ids import decode
from toolhub.kernel.pagination import page_of
from toolhub.kernel.parsers import read_json
from toolhub.kernel.problems import NotFound, Problem

if TYPE_CHECKING:
    from uuid import UUID

    from django.forms import Form
    from django.http import HttpResponse

SAFETY_CLASSES = ("Low", "Medium", "High")
SIDE_EFFECTS = ("None", "Read", "Write", "Network", "Filesystem", "Browser", "Process")
CAPABILITIES = ("fs", "net", "browser", "proc", "tmp")


@require_GET
@needs("tools.view")
def tools(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Tool with .current), filters, states, safety_classes, side_effects, capabilities, may_submit."""
    filters = {name: request.GET.get(name, "") for name in selectors.FILTERS}
    rows = selectors.find_tools(by=request.principal, **filters)
    context = {
        "section": "tools",
        "page": page_of(rows, prefix="tol", after=request.GET.get("after", "")),
        "filters": filters,
        "states": ToolState.choices,
        "safety_classes": SAFETY_CLASSES,
        "side_effects": SIDE_EFFECTS,
        "capabilities": CAPABILITIES,
        "may_submit": request.principal.may("tools.submit"),
    }
    return render_page(request, "registry/tool_list.html", context, partial="rows")


def _tool_page(
    request: ConsoleRequest, name: str, tab: str, extra: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """The frame of all tabs. Context: tool, tab, manifest (of the current or newest version, or None), version, allowed (states),
    may_operate, latest_approved (ToolVersion to enable, or None), enable_form, pause_form, deprecate_form, and the tab's own.
    """
    found = selectors.get_tool(name, tenant_id=request.principal.tenant_id)
    newest = found.versions.order_by("-pk").first()
    version = found.current or newest
    approved = found.versions.filter(review_state=VersionState.APPROVED).order_by("-pk").first()
    context = {
        "section": "tools",
        "tool": found,
        "tab": tab,
        "version": version,
        "manifest": version.view if version else None,
        "allowed": sorted(TRANSITIONS[found.state]),
        "may_operate": request.principal.may("tools.operate"),
        "latest_approved": approved if approved and approved != found.current else None,
        "enable_form": EnableForm(),
        "pause_form": StateForm(),
        "deprecate_form": DeprecateForm(tool=name),
    }
    return render_page(request, "registry/tool_detail.html", context | extra, partial="tab", status=status)


@require_GET
@needs("tools.view")
def tool(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab overview. Context beside the frame's: grants (list of active Grant that cover the tool, when the person may see them)."""
    return _overview_tab(request, name, {})


def _overview_tab(request: ConsoleRequest, name: str, extra: dict[str, Any], *, status: int = 200) -> HttpResponse:
    grants = []
    if request.principal.may("grants.view"):
        found = (
            Grant.objects.visible_to(request.principal).filter(revoked_at=None).select_related("agent").order_by("-pk")
        )
        grants = [grant for grant in found if grant.covers(name)]
    return _tool_page(request, name, "overview", {"grants": grants} | extra, status=status)


@require_GET
@needs("tools.view")
def tool_versions(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab versions. Context: versions (list of ToolVersion, newest first, with .reviews.all)."""
    found = selectors.get_tool(name, tenant_id=request.principal.tenant_id)
    versions = found.versions.prefetch_related("reviews").order_by("-pk")[:100]
    return _tool_page(request, name, "versions", {"versions": versions})


@require_GET
@needs("tools.view")
def tool_manifest(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab manifest: the document as a tree."""
    return _tool_page(request, name, "manifest", {})


@require_GET
@needs("tools.view")
def tool_activity(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab activity. Context: facts (the newest 50 Facts about the tool itself)."""
    facts = Fact.objects.visible_to(request.principal).filter(subject=f"soul:tool:{name}").order_by("-pk")[:50]
    return _tool_page(request, name, "activity", {"facts": facts})


def _change(request: ConsoleRequest, name: str, form: Form, key: str, do: Any) -> HttpResponse:
    """Run one state change; a form that is not right comes back with what was typed."""
    if form.is_valid():
        try:
            done: Tool = do(form.cleaned_data)
        except Problem as problem:
            if not problem.details.get("findings"):
                raise
            add_problem(form, problem)
        else:
            messages.success(
                request,
                gettext("%(tool)s is now %(state)s. It counts with the next call.")
                % {"tool": done.name, "state": done.get_state_display().lower()},
            )
            return redirect("tool", done.name)
    return _overview_tab(request, name, {key: form}, status=422)


@require_POST
@needs("tools.operate")
def enable(request: ConsoleRequest, name: str) -> HttpResponse:
    """POST reason and, for a version other than the current one, version (tvn_…)."""

    def do(data: dict[str, Any]) -> Tool:
        try:
            version_id = decode("tvn", data["version"]) if data["version"] else None
        except ValueError as error:
            raise NotFound(gettext("There is no such version.")) from error
        return services.enable_tool(name=name, reason=data["reason"], version_id=version_id, by=request.principal)

    return _change(request, name, EnableForm(request.POST), "enable_form", do)


@require_POST
@needs("tools.operate")
def pause(request: ConsoleRequest, name: str) -> HttpResponse:
    return _change(
        request,
        name,
        StateForm(request.POST),
        "pause_form",
        lambda data: services.pause_tool(name=name, reason=data["reason"], by=request.principal),
    )


@require_POST
@needs("tools.operate")
def deprecate(request: ConsoleRequest, name: str) -> HttpResponse:
    return _change(
        request,
        name,
        DeprecateForm(request.POST, tool=name),
        "deprecate_form",
        lambda data: services.deprecate_tool(
            name=name, reason=data["reason"], sunset_on=data["sunset_on"], by=request.principal
        ),
    )


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def submit(request: ConsoleRequest) -> HttpResponse:
    """Context: form (SubmitForm), findings (list of {pointer, rule, message, fix, severity})."""
    form = SubmitForm(request.POST or None, request.FILES or None)
    findings: list[dict[str, str]] = []
    if request.method == "POST" and form.is_valid():
        raw = form.raw()
        try:
            version = services.submit_version(document=read_json(raw), by=request.principal)
        except ManifestInvalid as problem:
            findings = problem.details["findings"]
            form.add_error(None, problem.detail)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("Submitted. Somebody else must review it."))
            return (
                redirect("review", version.pk)
                if request.principal.may("tools.review")
                else redirect("tool_versions", version.tool.name)
            )
        if form.cleaned_data.get("file") is not None:  # a browser does not send a file twice: keep what was in it
            kept = request.POST.copy()
            kept["text"] = raw.decode("utf-8", "replace")
            form.data = kept
    context = {"section": "submit", "form": form, "findings": findings}
    return render_page(
        request, "registry/submit.html", context, partial="submit-panel", status=422 if form.is_bound else 200
    )


@require_GET
@needs("tools.review")
def reviews(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of ToolVersion with .tool), filters ({state}), states, me (wire id)."""
    state = request.GET.get("state", VersionState.SUBMITTED)
    rows = ToolVersion.objects.filter(tool__tenant_id=request.principal.tenant_id).select_related("tool")
    if state in VersionState.values:
        rows = rows.filter(review_state=state)
    context = {
        "section": "reviews",
        "page": page_of(rows, prefix="tvn", after=request.GET.get("after", "")),
        "filters": {"state": state},
        "states": VersionState.choices,
        "me": request.principal.id,
    }
    return render_page(request, "registry/review_list.html", context, partial="rows")


def _review_page(request: ConsoleRequest, version: ToolVersion, form: ReviewForm) -> HttpResponse:
    try:
        services.check_can_review(version, by=request.principal)
        why_not = "" if request.principal.may("tools.review") else gettext("You do not hold the permission to review.")
    except Problem as problem:
        why_not = problem.detail
    base = version.tool.current if version.tool.current_id != version.pk else None
    findings = [Finding(**each) for each in version.warnings]
    context = {
        "section": "reviews",
        "version": version,
        "manifest": version.view,
        "base": base,
        "diff": diff_documents(base.manifest if base else None, version.manifest),
        "warnings": findings,
        "form": form,
        "why_not": why_not,
        "approvals_missing": services.approvals_missing(version),
        "reviews": version.reviews.order_by("pk"),
        "may_enable": request.principal.may("tools.operate")
        and version.review_state == VersionState.APPROVED
        and version.tool.current_id != version.pk,
        "enable_form": EnableForm(),
    }
    return render_page(
        request, "registry/review_detail.html", context, partial="review-panel", status=422 if form.errors else 200
    )


def _version(request: ConsoleRequest, version_id: UUID) -> ToolVersion:
    rows = ToolVersion.objects.select_related("tool__current").filter(tool__tenant_id=request.principal.tenant_id)
    return rows.get(pk=version_id)


@require_GET
@needs("tools.review")
def review(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """Context: version (with .tool), manifest (Manifest view), base (ToolVersion compared with, or None), diff (Diff for the
    `diff` tag), warnings (list of Finding), form (ReviewForm), why_not (sentence or ""), approvals_missing (int), reviews
    (list of Review), may_enable, enable_form.
    """
    return _review_page(request, _version(request, version_id), ReviewForm())


@require_POST
@needs("tools.review")
def review_decide(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """POST decision (approve, refuse) and note."""
    form = ReviewForm(request.POST)
    if form.is_valid():
        decision = Decision(form.cleaned_data["decision"])
        try:
            services.review_version(
                version_id=version_id, decision=decision, note=form.cleaned_data["note"], by=request.principal
            )
        except Problem as problem:
            if not problem.details.get("findings"):
                raise
            add_problem(form, problem)
        else:
            told = gettext("Approved.") if decision is Decision.APPROVE else gettext("Refused.")
            messages.success(request, told + " " + gettext("Your decision is on record."))
            return redirect("review", version_id)
    return _review_page(request, _version(request, version_id), form)
