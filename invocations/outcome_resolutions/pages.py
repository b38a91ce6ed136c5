"""Pages of outcome resolutions: where operators say what became of a call with an unknown outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods

from invocations.models import Invocation, Resolution
from invocations.outcome_resolutions.services import check_can_resolve, resolve_outcome
from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


class ResolutionForm(ReasonForm):
    resolution = forms.ChoiceField(
        choices=[
            (Resolution.TOOK_EFFECT, gettext_lazy("Its effect took place.")),
            (Resolution.NO_EFFECT, gettext_lazy("It had no effect: its caller may make the same call again.")),
        ],
        widget=forms.RadioSelect,
        label=gettext_lazy("Outcome"),
    )
    field_order = ("resolution", "reason")


@require_http_methods(["GET", "POST"])
@needs("invocations.resolve")
def invocation_resolve(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """Context: invocation, form (ResolutionForm)."""
    rows = Invocation.objects.visible_to(request.principal).select_related("agent", "version")
    invocation = rows.get(pk=invocation_id)
    check_can_resolve(invocation)
    form = ResolutionForm(request.POST if request.method == "POST" else None)
    if submit_form(
        form,
        lambda: resolve_outcome(
            invocation_id=invocation_id,
            resolution=form.cleaned_data["resolution"],
            reason=form.cleaned_data["reason"],
            by=request.principal,
        ),
        refusals=SchemaInvalid,
    ):
        messages.success(request, gettext("The outcome of this call was recorded."))
        return redirect("invocation", invocation_id)
    context = {"section": "invocations", "invocation": invocation, "form": form}
    return render_page(
        request, "outcome_resolutions/invocation_resolve.html", context, status=422 if form.errors else 200
    )
