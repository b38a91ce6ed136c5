"""Page of asking: how a person asks for the consent that a refused call lacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods

from invocations.approvals.asked_consents import ask_call_consent, can_ask_consent
from invocations.models import Invocation
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


class PurposeForm(forms.Form):
    purpose = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("What the tool will be used for; the person who decides reads it."),
    )


@require_http_methods(["GET", "POST"])
@needs("grants.request")
def consent_ask(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """Context: invocation, can_ask, form (PurposeForm). POST purpose asks."""
    rows = Invocation.objects.visible_to(request.principal).select_related("agent")
    found = rows.get(pk=invocation_id)
    form = PurposeForm(request.POST if request.method == "POST" else None)
    if asked := submit_form(
        form,
        lambda: ask_call_consent(
            invocation_id=invocation_id, purpose=form.cleaned_data["purpose"], by=request.principal
        ),
    ):
        messages.success(request, gettext("The request was sent. Somebody else decides on it."))
        if request.principal.may("consents.view"):
            return redirect("consent", asked.pk)
        return redirect("invocation", invocation_id)
    context = {
        "section": "invocations",
        "invocation": found,
        "can_ask": can_ask_consent(found, by=request.principal),
        "form": form,
    }
    return render_page(request, "approvals/consent_ask.html", context, status=422 if form.is_bound else 200)
