"""Pages of files: how people store, take and remove the files of their tenant's tools."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import content_disposition_header
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from invocations.files import services as files
from invocations.models import StoredFile
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page


class FileForm(forms.Form):
    path = forms.CharField(
        max_length=400,
        label=gettext_lazy("Path"),
        help_text=gettext_lazy("Where tools see it, for example /data/reports/june.csv. An existing file is replaced."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    upload = forms.FileField(required=False, label=gettext_lazy("File"))
    text = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Or enter its text"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if bool(cleaned.get("upload")) == bool(cleaned.get("text")):
            raise forms.ValidationError(gettext("Choose a file or enter its text."))
        return cleaned

    def content(self) -> bytes:
        upload = self.cleaned_data["upload"]
        return bytes(upload.read()) if upload else str(self.cleaned_data["text"]).replace("\r\n", "\n").encode()


@require_http_methods(["GET", "POST"])
@needs("files.manage")
def file_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of StoredFile), taken and room (bytes), form (FileForm). POST stores one."""
    by = request.principal
    form = FileForm(request.POST or None, request.FILES or None)
    if made := submit_form(
        form, lambda: files.store_file(path=form.cleaned_data["path"], content=form.content(), by=by)
    ):
        row, created = made
        told = gettext("%(path)s was stored.") if created else gettext("%(path)s was replaced.")
        messages.success(request, told % {"path": row.path})
        return redirect("files")
    rows = StoredFile.objects.filter(tenant_id=by.tenant_id).defer("ciphertext")
    context = {
        "section": "files",
        "page": fetch_page(rows, prefix="fil", after=request.GET.get("after", "")),
        "taken": files.sum_file_bytes(rows),
        "room": settings.TOOLHUB_FILES_MAX_MB * files.MIB,
        "form": form,
    }
    return render_page(request, "files/file_list.html", context, status=422 if form.errors else 200)


@require_POST
@needs("files.manage")
def file_take(request: ConsoleRequest, path: str) -> HttpResponse:
    """Download it. That somebody did is a fact, so this is no link."""
    content = files.read_file(path=f"/data/{path}", by=request.principal)
    name = path.rpartition("/")[2]
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    response = HttpResponse(content, content_type="application/octet-stream", headers=headers)
    response.headers["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name) or ""
    return response


@require_POST
@needs("files.manage")
def file_remove(request: ConsoleRequest, path: str) -> HttpResponse:
    files.remove_file(path=f"/data/{path}", by=request.principal)
    messages.success(request, gettext("%(path)s was removed.") % {"path": f"/data/{path}"})
    return redirect("files")
