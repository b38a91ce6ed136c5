"""Pages of erasures: a person erased in the console, and the times that values are kept for.

The person's id is sent in bodies only, never in an address: addresses are written down on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.sign_in.adapters import recently_authenticated
from evidence import retention
from evidence.erasures import services as erasures_services
from evidence.erasures.holders import CLASSES
from evidence.models import Erasure, Fact
from kernel.components.forms import ReasonForm, add_problem, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

NAMES = {
    "calls": gettext_lazy("Calls"),
    "chains": gettext_lazy("Chains"),
    "agent_runs": gettext_lazy("Agent runs"),
    "values": gettext_lazy("Stored values"),
    "artifacts": gettext_lazy("Artifacts"),
    "files": gettext_lazy("Files that calls have written"),
    "consents": gettext_lazy("Consents"),
    "conversations": gettext_lazy("Conversations of the playground"),
    "opened exports": gettext_lazy("Exports of revealed values"),
    "replays": gettext_lazy("Reasons of replays"),
    "texts": gettext_lazy("Texts that name the person"),
}


class ErasureForm(ReasonForm):
    user_id = forms.CharField(
        max_length=erasures_services.MAX_USER_ID,
        label=gettext_lazy("Id of the person"),
        help_text=gettext_lazy("The user_id that callers send, exactly as they send it."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    names = forms.CharField(
        required=False,
        max_length=erasures_services.MAX_NAMES * erasures_services.MAX_USER_ID,
        label=gettext_lazy("Other names"),
        help_text=gettext_lazy(
            "Other names that people use for this person, one per line. "
            "Reasons and notes that contain one of them, or the id, are erased."
        ),
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("user_id", "names", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].help_text = gettext_lazy("Kept with the erasure. Do not name the person here.")

    def clean_names(self) -> list[str]:
        names = [name.strip() for name in self.cleaned_data["names"].splitlines() if name.strip()]
        if len(names) > erasures_services.MAX_NAMES:
            raise forms.ValidationError(
                gettext("Enter at most %(most)s names.") % {"most": erasures_services.MAX_NAMES}, code="max_length"
            )
        return names


class ConfirmForm(ErasureForm):
    confirm = forms.CharField(widget=forms.HiddenInput)


class RetentionForm(forms.Form):
    """Days for each class; empty: without an end. Fields are ``keep_<class>``: one class is called as an attribute of forms is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, kept in CLASSES.items():
            self.fields[f"keep_{name}"] = forms.IntegerField(
                required=False,
                min_value=retention.LEAST_DAYS,
                max_value=retention.MOST_DAYS,
                label=gettext(kept.label),
                widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
            )


def label_counts(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(str(NAMES.get(name, name)), number) for name, number in sorted(counts.items())]


@require_GET
@needs("evidence.erase")
def erasures(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Erasure), working (whether one goes on)."""
    rows = Erasure.objects.filter(tenant_id=request.principal.tenant_id)
    page = fetch_page(rows, prefix="era", after=request.GET.get("after", ""))
    context = {
        "section": "erasures",
        "page": page,
        "working": any(row.state != "done" for row in page.rows),
    }
    return render_page(request, "erasures/erasure_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("evidence.erase")
def erasure_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ErasureForm). POST shows what it concerns: found ([(name, count)]), confirm (ConfirmForm)."""
    form = ErasureForm(request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"section": "erasures", "form": form}
    if form.is_valid():
        said = form.cleaned_data
        try:
            found, word = erasures_services.preview_erasure(
                user_id=said["user_id"], names=said["names"], by=request.principal
            )
        except Problem as problem:
            add_problem(form, problem)
        else:
            confirm = ConfirmForm(initial=said | {"confirm": word})
            context |= {"found": label_counts(found), "confirm": confirm, "said": said}
            return render_page(request, "erasures/erasure_confirm.html", context)
    return render_page(request, "erasures/erasure_form.html", context, status=422 if form.is_bound else 200)


@require_POST
@needs("evidence.erase")
@recently_authenticated
def erasure_confirm(request: ConsoleRequest) -> HttpResponse:
    """Erase what was shown before."""
    form = ConfirmForm(request.POST)
    if row := submit_form(form, lambda: erasures_services.erase_subject(by=request.principal, **form.cleaned_data)):
        messages.success(request, gettext("The erasure has begun. It cannot be undone."))
        return redirect("erasure", row.pk)
    context = {"section": "erasures", "form": form}
    return render_page(request, "erasures/erasure_form.html", context, status=422)


@require_GET
@needs("evidence.erase")
def erasure_page(request: ConsoleRequest, erasure_id: UUID) -> HttpResponse:
    """Context: erasure, counts ([(name, count)]), facts."""
    by = request.principal
    row = Erasure.objects.get(pk=erasure_id, tenant_id=by.tenant_id)
    context = {
        "section": "erasures",
        "erasure": row,
        "counts": label_counts(row.counts),
        "facts": Fact.objects.visible_to(by).filter(subject=row.wire_id).order_by("id"),
    }
    return render_page(request, "erasures/erasure_detail.html", context, partial="state")


@require_http_methods(["GET", "POST"])
@needs("evidence.retain")
def retention_page(request: ConsoleRequest) -> HttpResponse:
    """Context: form (RetentionForm)."""
    by = request.principal
    posted = request.method == "POST"
    form = RetentionForm(
        request.POST if posted else None,
        initial={f"keep_{name}": days for name, days in retention.load_times(by.tenant_id).items()},
    )
    if posted and form.is_valid():
        retention.set_retention(days={name: form.cleaned_data[f"keep_{name}"] for name in CLASSES}, by=by)
        messages.success(request, gettext("The retention times are set. Older values are removed within minutes."))
        return redirect("retention")
    context = {"section": "retention", "form": form}
    return render_page(request, "erasures/retention.html", context, status=422 if posted else 200)
