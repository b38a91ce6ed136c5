"""Pages of secrets: set and removed in the console. A value goes in and never comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from registry.forms import SecretForm
from registry.models import Secret
from registry.secrets import services as secrets

if TYPE_CHECKING:
    from django.http import HttpResponse


@sensitive_post_parameters("value")
@require_http_methods(["GET", "POST"])
@needs("secrets.manage")
def secret_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Secret), shown (list of {secret, used_by: tools}), form (SecretForm). POST sets one."""
    by = request.principal
    form = SecretForm(request.POST or None)
    if row := submit_form(
        form, lambda: secrets.set_secret(name=form.cleaned_data["name"], value=form.cleaned_data["value"], by=by)
    ):
        told = gettext("%(name)s is set. Give it to an installation that needs it.")
        if row.number > 1:
            told = gettext("%(name)s has a new value. It is used from the next call.")
        messages.success(request, told % {"name": row.name})
        return redirect("secrets")
    rows = Secret.objects.filter(tenant_id=by.tenant_id)
    page = fetch_page(rows, prefix="sec", after=request.GET.get("after", ""))
    users = secrets.users_by_secret(by.tenant_id)
    shown = [{"secret": row, "used_by": users.get(row.name, [])} for row in page.rows]
    context = {"section": "secrets", "page": page, "shown": shown, "form": form}
    return render_page(request, "secrets/secret_list.html", context, status=422 if form.errors else 200)


@require_POST
@needs("secrets.manage")
def secret_remove(request: ConsoleRequest, name: str) -> HttpResponse:
    secrets.remove_secret(name=name, by=request.principal)
    messages.success(request, gettext("%(name)s was removed.") % {"name": name})
    return redirect("secrets")
