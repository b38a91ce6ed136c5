"""Pages of submissions: what a developer brings, what they have brought, and how their tools do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_POST

from kernel.components.diffs import diff_documents
from kernel.components.forms import add_problem
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem, SchemaInvalid
from registry.capsules.services import upload_capsule
from registry.models import ToolVersion
from registry.submissions.checked_packages import CheckedPackage, check_capsule, check_python_file
from registry.submissions.forms import CapsuleForm, PythonFileForm
from registry.submissions.progress import list_progress
from registry.tools import selectors
from registry.tools.pages import describe_tool_figures
from registry.versions.pages import installed_in
from registry.versions.presentation import shown_changes
from unitools.changes import find_worst_risk, is_breaking
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from django.forms import Form
    from django.http import HttpResponse

    from registry.versions.services import PreparedVersion


@require_GET
@needs("tools.submit")
def submissions(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of ToolVersion), rows (SubmissionProgress of each)."""
    by = request.principal
    rows = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id, submitted_by=by.id).select_related("tool")
    page = fetch_page(rows.prefetch_related("reviews"), prefix="tvn", after=request.GET.get("after", ""))
    context = {"section": "submissions", "page": page, "rows": list_progress(page.rows, by=by)}
    return render_page(request, "submissions/submission_list.html", context, partial="rows")


def _preview(prepared: PreparedVersion) -> dict[str, Any]:
    """What a reviewer will see of it."""
    base, manifest = prepared.base, Manifest(prepared.document)
    asked = {"ms": manifest.timeout_ms, "asked": manifest.timeout_ms, "manifest": "timeout_ms" in manifest.document}
    return {
        "manifest": manifest,
        "time_limit": asked | {"rule": "", "some": False},
        "base": base,
        "changes": shown_changes(prepared.changes),
        "worst_risk": find_worst_risk(prepared.changes),
        "is_breaking": is_breaking(prepared.changes),
        "diff": diff_documents(base.manifest if base else None, prepared.document),
    }


def _render(
    request: ConsoleRequest,
    *,
    capsule: CapsuleForm | None = None,
    python: PythonFileForm | None = None,
    checked: CheckedPackage | None = None,
    what: str = "",
    status: int = 200,
) -> HttpResponse:
    context = {
        "section": "submissions",
        "capsule": capsule or CapsuleForm(),
        "python": python or PythonFileForm(),
        "checked": checked,
        "what": what,
        "previews": [_preview(each) for each in checked.prepared]
        if checked is not None and checked.may_be_submitted
        else [],
    }
    return render_page(request, "submissions/submission_new.html", context, status=status)


@require_GET
@needs("tools.submit")
def submission_new(request: ConsoleRequest) -> HttpResponse:
    """Context: capsule (CapsuleForm), python (PythonFileForm), checked (CheckedPackage or None), what was checked (``capsule`` or
    ``python``), previews (what a reviewer will see of each version, once it may be submitted).
    """
    return _render(request)


@require_POST
@needs("tools.submit")
def submission_capsule(request: ConsoleRequest) -> HttpResponse:
    """POST capsule and signature; ``submit``, and the digest of what was looked at before, to register what is in it."""
    form = CapsuleForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render(request, capsule=form, what="capsule", status=422)
    said = form.cleaned_data
    content = bytes(said["capsule"].read())
    try:
        checked = check_capsule(content, by=request.principal)
        assert checked.archive is not None
        digest = checked.archive.digest
        if "submit" in request.POST and checked.may_be_submitted:
            if said["digest"] != digest:
                raise SchemaInvalid.at("/capsule", "This is another file than the one that was checked.")
            signature = bytes(said["signature"].read()) if said["signature"] is not None else b""
            return _register(request, content, signature)
    except Problem as problem:
        return _refuse(request, form, problem, capsule=form, what="capsule")
    return _render(
        request,
        capsule=CapsuleForm(initial={"digest": digest}),
        checked=checked,
        what="capsule",
        status=422 if checked.errors else 200,
    )


@require_POST
@needs("tools.submit")
def submission_python(request: ConsoleRequest) -> HttpResponse:
    """POST file or source, group, version, manifests; ``submit`` to register what it becomes."""
    form = PythonFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render(request, python=form, what="python", status=422)
    said = form.cleaned_data
    try:
        checked = check_python_file(
            name=said["name"],
            source=said["source"],
            group=said["group"].strip(),
            version=said["version"].strip(),
            documents=said["manifests"],
            by=request.principal,
        )
        if "submit" in request.POST and checked.may_be_submitted:
            assert checked.archive is not None
            return _register(request, checked.archive.data, b"")
    except Problem as problem:
        return _refuse(request, form, problem, python=form, what="python")
    kept = {name: said[name] for name in ("name", "source", "group", "version")}
    kept["manifests"] = json.dumps(checked.documents, indent=2, ensure_ascii=False) if checked.documents else ""
    return _render(
        request,
        python=PythonFileForm(initial=kept),
        checked=checked,
        what="python",
        status=422 if checked.errors else 200,
    )


def _register(request: ConsoleRequest, content: bytes, signature: bytes) -> HttpResponse:
    made = upload_capsule(content=content, envelope=signature, by=request.principal)
    n = len(made.versions)
    told = ngettext("%(n)d version was submitted.", "%(n)d versions were submitted.", n) % {"n": n}
    messages.success(request, told + " " + gettext("Another person must review it."))
    return redirect("submissions")


def _refuse(request: ConsoleRequest, form: Form, problem: Problem, **page: Any) -> HttpResponse:
    if problem.status >= 500:
        raise problem
    add_problem(form, problem)
    return _render(request, **page, status=422)


@require_GET
@needs("tools.submit")
def submitted_tool(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: that of :func:`registry.tools.pages.describe_tool_figures`, tool, page (of its versions), versions (list of {row,
    installations, calls}).
    """
    by = request.principal
    tool = selectors.get_tool(name, tenant_id=by.tenant_id)
    figures = describe_tool_figures(name, by=by)
    report = figures["report"]
    page = fetch_page(tool.versions.all(), prefix="tvn", after=request.GET.get("after", ""))
    context = figures | {
        "section": "submissions",
        "tool": tool,
        "versions": [
            {
                "row": row,
                "installations": installed_in(row),
                "calls": report.versions.get(row.pk, 0) if report else None,
            }
            for row in page.rows
        ],
        "page": page,
    }
    return render_page(request, "submissions/submitted_tool.html", context)
