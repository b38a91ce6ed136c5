"""Pages of capsules: whose signatures count, and the code that reviewers get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import NotFound
from registry.capsules import publisher_keys as capsules_publisher_keys
from registry.capsules import services as capsules
from registry.capsules.api import content_response
from registry.capsules.models import PublisherKey
from registry.models import ToolVersion
from registry.object_permissions import on_version

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


class PublisherKeyForm(forms.Form):
    name = forms.CharField(max_length=capsules_publisher_keys.MAX_NAME, label=gettext_lazy("Name"))
    public_key = forms.CharField(
        max_length=capsules_publisher_keys.MAX_PEM,
        label=gettext_lazy("Public key"),
        help_text=gettext_lazy("An Ed25519 key in PEM, as openssl pkey -pubout prints it."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )


class PublishingForm(forms.Form):
    signatures_required = forms.BooleanField(
        required=False,
        label=gettext_lazy("Refuse unsigned packages"),
        help_text=gettext_lazy(
            "Applies to packages uploaded from now on. To control which versions run, use signed in a policy."
        ),
    )


def _page(request: ConsoleRequest, form: PublisherKeyForm, *, status: int = 200) -> HttpResponse:
    by = request.principal
    rows = PublisherKey.objects.filter(tenant_id=by.tenant_id)
    context: dict[str, Any] = {
        "section": "publisher_keys",
        "page": fetch_page(rows, prefix="pbk", after=request.GET.get("after", "")),
        "form": form,
        "rules": PublishingForm(
            initial={"signatures_required": capsules_publisher_keys.signatures_required(by.tenant_id)}
        ),
    }
    return render_page(request, "capsules/publisher_key_list.html", context, status=status)


@require_http_methods(["GET", "POST"])
@needs("publishers.manage")
def publisher_keys(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of PublisherKey), form (PublisherKeyForm), rules (PublishingForm). POST adds a key."""
    form = PublisherKeyForm(request.POST if request.method == "POST" else None)
    if row := submit_form(
        form,
        lambda: capsules_publisher_keys.add_publisher_key(
            name=form.cleaned_data["name"], pem=form.cleaned_data["public_key"], by=request.principal
        ),
    ):
        messages.success(request, gettext("Signatures of %(name)s are accepted from now on.") % {"name": row.name})
        return redirect("publisher_keys")
    return _page(request, form, status=422 if form.errors else 200)


@require_POST
@needs("publishers.manage")
def publishing_change(request: ConsoleRequest) -> HttpResponse:
    form = PublishingForm(request.POST)
    form.is_valid()
    row = capsules_publisher_keys.change_publishing(
        signatures_required=form.cleaned_data["signatures_required"], by=request.principal
    )
    told = gettext("Packages may be uploaded without a signature.")
    if row.signatures_required:
        told = gettext("Packages are accepted only with a signature of one of these keys.")
    messages.success(request, told)
    return redirect("publisher_keys")


@require_http_methods(["GET", "POST"])
@needs("publishers.manage")
def publisher_key_revoke(request: ConsoleRequest, publisher_key_id: UUID) -> HttpResponse:
    """Context: key (PublisherKey), form (ReasonForm), versions (how many tool versions it signed)."""
    row = PublisherKey.objects.get(pk=publisher_key_id, tenant_id=request.principal.tenant_id)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if submit_form(
        form,
        lambda: capsules_publisher_keys.revoke_publisher_key(
            key_id=publisher_key_id, reason=form.cleaned_data["reason"], by=request.principal
        ),
    ):
        told = gettext("%(name)s is revoked. Versions that it signed count as unsigned from the next call.")
        messages.success(request, told % {"name": row.name})
        return redirect("publisher_keys")
    context = {
        "section": "publisher_keys",
        "key": row,
        "form": form,
        "versions": ToolVersion.objects.filter(capsule__signed_by=row).count(),
    }
    return render_page(
        request, "capsules/publisher_key_revoke.html", context, status=422 if request.method == "POST" else 200
    )


@require_GET
@needs("tools.review", held=on_version)
def version_capsule(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """The code of a version that was uploaded, for who reviews it."""
    version = ToolVersion.objects.get(pk=version_id, tool__tenant_id=request.principal.tenant_id)
    if version.capsule_id is None:
        raise NotFound("The code of this version was not uploaded: it lies on the hosts that run tools.")
    return content_response(*capsules.read_capsule(capsule_id=version.capsule_id, by=request.principal))
