"""Pages of exports: how people take evidence out of the hub in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evidence.exports.downloads import content_response
from evidence.exports.forms import ExportForm
from evidence.exports.services import cancel_export, make_export
from evidence.models import ExportJob, Fact
from evidence.models.exports import OPEN
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

REVEAL = "evidence.reveal"
FILLED_IN = ("format", "query", "since", "until", "who", "user")


def _job(request: ConsoleRequest, job_id: UUID) -> ExportJob:
    return ExportJob.objects.get(pk=job_id, tenant_id=request.principal.tenant_id)


def _may_download(request: ConsoleRequest, job: ExportJob) -> bool:
    return not job.opens or request.principal.may(REVEAL)


@require_GET
@needs("evidence.view")
def exports(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of ExportJob), working (whether to look again soon), may_reveal."""
    page = fetch_page(
        ExportJob.objects.filter(tenant_id=request.principal.tenant_id),
        prefix="exp",
        after=request.GET.get("after", ""),
    )
    context = {
        "section": "exports",
        "page": page,
        "working": any(row.state in OPEN for row in page.rows),
        "may_reveal": request.principal.may(REVEAL),
    }
    return render_page(request, "exports/export_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("evidence.view")
def export_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ExportForm). GET may fill in what is not about leaves."""
    may_reveal = request.principal.may(REVEAL)
    if request.method == "POST":
        form = ExportForm(request.POST, by=request.principal, may_reveal=may_reveal)
    else:
        initial = {name: request.GET[name] for name in FILLED_IN if name in request.GET}
        form = ExportForm(initial=initial, by=request.principal, may_reveal=may_reveal)
    if job := submit_form(form, lambda: make_export(by=request.principal, **form.asked())):
        return redirect("export", job.pk)
    context = {"section": "exports", "form": form}
    return render_page(request, "exports/export_form.html", context, status=422 if request.method == "POST" else 200)


@require_GET
@needs("evidence.view")
def export(request: ConsoleRequest, job_id: UUID) -> HttpResponse:
    """Context: job, working, may_download, facts."""
    job = _job(request, job_id)
    context = {
        "section": "exports",
        "job": job,
        "working": job.state in OPEN,
        "may_download": _may_download(request, job),
        "facts": Fact.objects.visible_to(request.principal).filter(subject=job.wire_id).order_by("id"),
    }
    return render_page(request, "exports/export_detail.html", context, partial="export")


@require_GET
@needs("evidence.view")
def export_content(request: ConsoleRequest, job_id: UUID) -> HttpResponse:
    if not _may_download(request, _job(request, job_id)):
        request.principal.check(REVEAL)
    return content_response(request, job_id=job_id, by=request.principal, via="console")  # type: ignore[return-value]


@require_POST
@needs("evidence.view")
def export_cancel(request: ConsoleRequest, job_id: UUID) -> HttpResponse:
    cancel_export(job_id=job_id, by=request.principal)
    messages.success(request, gettext("The export was cancelled."))
    return redirect("export", job_id)
