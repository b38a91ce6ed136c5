"""Pages of halts: kill switches thrown and lifted in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from access.halts import services as halts
from access.models import Agent, Halt, Reach
from access.sign_in.adapters import is_fresh, redirect_to_reauthenticate
from kernel.components.forms import ReasonForm, add_problem
from kernel.http.console import ConsoleRequest, find_way_back, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem
from registry.halt_targets import throw_halt
from registry.models import Installation

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from access.models import Tenant
    from kernel.principal import Principal

WORDS = {
    Reach.TOOL: gettext_lazy("One tool"),
    Reach.VERSION: gettext_lazy("One version of a tool"),
    Reach.AGENT: gettext_lazy("One agent"),
    Reach.TENANT: gettext_lazy("The whole tenant"),
    Reach.HUB: gettext_lazy("The whole hub"),
}
HUB_WORD = "everything"


class HaltForm(forms.Form):
    """What stops many calls is confirmed by a typed name; the server checks it."""

    reach = forms.ChoiceField(label=gettext_lazy("What to stop"))
    target = forms.CharField(
        max_length=128,
        required=False,
        label=gettext_lazy("Id"),
        help_text=gettext_lazy(
            "The id of the tool, the version (tvn_…) or the agent (agt_…). Leave empty for the whole tenant or hub."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "targets"}),
    )
    reason = forms.CharField(
        max_length=halts.MAX_REASON,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence, and shown to every caller who is refused."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    confirm = forms.CharField(max_length=128, required=False, label=gettext_lazy("Confirm"))

    def __init__(self, *args: Any, by: Principal, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reach: Any = self.fields["reach"]
        reach.choices = [(each, word) for each, word in WORDS.items() if each != Reach.HUB or by.may("hub.manage")]
        self.words = {str(Reach.TENANT): tenant.slug, str(Reach.HUB): HUB_WORD}
        help_text = gettext("To stop the whole tenant, type %(tenant)s.") % {"tenant": tenant.slug}
        if by.may("hub.manage"):
            help_text += " " + gettext("To stop the whole hub, type %(word)s.") % {"word": HUB_WORD}
        self.fields["confirm"].help_text = help_text
        self.fields["confirm"].widget.attrs |= {"autocomplete": "off"}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        word = self.words.get(data.get("reach", ""))
        if word is not None and data.get("confirm", "").strip() != word:
            self.add_error("confirm", gettext("Type %(word)s to confirm.") % {"word": word})
        return data


def _page(request: ConsoleRequest, extra: dict[str, Any], *, status: int = 200) -> HttpResponse:
    by = request.principal
    rows = Halt.objects.visible_to(by)
    thrown = list(rows.filter(lifted_at=None).order_by("-pk")[:100])
    asked = {name: request.GET.get(name, "") for name in ("reach", "target")}
    context = {
        "section": "halts",
        "thrown": [{"halt": row, "word": WORDS[Reach(row.reach)], "may_lift": _may_lift(row, by)} for row in thrown],
        "page": fetch_page(rows.exclude(lifted_at=None), prefix="hlt", after=request.GET.get("after", "")),
        "words": {str(reach): word for reach, word in WORDS.items()},
        "tools": Installation.objects.visible_to(by).order_by("name").values_list("name", flat=True)[:200],
        "agents": Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")[:200],
        "form": HaltForm(by=by, tenant=request.tenant, initial=asked),
        "lift_form": ReasonForm(),
        "lifting": None,
    }
    return render_page(request, "halts/halt_list.html", context | extra, status=status)


def _may_lift(halt: Halt, by: Principal) -> bool:
    return halt.reach != Reach.HUB or by.may("hub.manage")


@require_GET
@needs("halts.throw")
def halt_list(request: ConsoleRequest) -> HttpResponse:
    """Context: thrown (list of {halt, word, may_lift}), page (Page of lifted Halt), words ({reach: word}), tools (ids), agents,
    form (HaltForm, filled in from ?reach= and ?target=), lift_form, lifting (the Halt whose form was not right, or None).
    """
    return _page(request, {})


@require_POST
@needs("halts.throw")
def halt_throw(request: ConsoleRequest) -> HttpResponse:
    """POST reach, target, reason, and confirm for a tenant (its short name) and for the hub."""
    form = HaltForm(request.POST, by=request.principal, tenant=request.tenant)
    if form.is_valid():
        data = form.cleaned_data
        reach = Reach(data["reach"])
        if reach in (Reach.HUB, Reach.TENANT) and not is_fresh(request):
            return redirect_to_reauthenticate(request)
        target = "" if reach in (Reach.HUB, Reach.TENANT) else data["target"]
        try:
            throw_halt(reach=reach, target=target, reason=data["reason"], by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The kill switch is on. The next call is refused, in every process."))
            return redirect("halts")
    return _page(request, {"form": form}, status=422)


@require_POST
@needs("halts.throw")
def halt_lift(request: ConsoleRequest, halt_id: UUID) -> HttpResponse:
    """POST reason. ``?next=``: the page that showed what is stopped."""
    halt = Halt.objects.visible_to(request.principal).get(pk=halt_id)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, {"lift_form": form, "lifting": halt}, status=422)
    halts.lift_halt(halt_id=halt_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The kill switch is lifted. Calls are accepted again."))
    return redirect(find_way_back(request, request.GET.get("next", ""), default="halts"))
