"""Pages of saved views: the address that opens one, and the list in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from invocations.saved_views import services
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


class SavedViewForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=services.MAX_NAME)
    query = forms.CharField(label=gettext_lazy("Search"), max_length=1000)


@require_GET
@needs("invocations.view")
def saved_view(request: ConsoleRequest, slug: str) -> HttpResponse:
    found = services.own_views(request.principal).get(slug=slug)
    return redirect(f"{reverse('invocations')}?{urlencode({'q': found.query})}")


@require_http_methods(["GET", "POST"])
@needs("invocations.view")
def saved_views(request: ConsoleRequest) -> HttpResponse:
    """Context: views, form (SavedViewForm). POST name, query keeps one."""
    form = SavedViewForm(
        request.POST if request.method == "POST" else None, initial={"query": request.GET.get("q", "")}
    )
    if made := submit_form(form, lambda: services.save_view(**form.cleaned_data, by=request.principal)):
        messages.success(request, gettext("The view was saved."))
        return redirect("saved_view", made.slug)
    context = {"section": "invocations", "views": services.own_views(request.principal), "form": form}
    return render_page(request, "saved_views/view_list.html", context, status=422 if form.errors else 200)


@require_POST
@needs("invocations.view")
def saved_view_delete(request: ConsoleRequest, view_id: UUID) -> HttpResponse:
    services.delete_view(view_id=view_id, by=request.principal)
    messages.success(request, gettext("The view was deleted."))
    return redirect("saved_views")
