"""Pages of halts: kill switches thrown and lifted in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.halts import services as halts
from access.halts.forms import REACH_WORDS, HaltForm
from access.models import Halt, Reach
from access.sign_in.adapters import is_fresh, redirect_to_reauthenticate
from kernel.components.forms import ReasonForm, add_problem
from kernel.http.console import ConsoleRequest, find_way_back, needs, render_page
from kernel.http.pagination import fetch_excerpt, fetch_page
from kernel.ids import encode
from kernel.problems import Problem
from registry.halt_targets import throw_halt
from registry.models import Installation, ToolVersion, VersionState

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from kernel.principal import Principal

MOST_THROWN = 100  # in force; those after them are shown once some are lifted
VERSIONS_OFFERED = 200


def _page(request: ConsoleRequest, extra: dict[str, Any], *, status: int = 200) -> HttpResponse:
    by = request.principal
    rows = Halt.objects.visible_to(by)
    thrown = fetch_excerpt(rows.filter(lifted_at=None).order_by("-pk"), MOST_THROWN)
    reach = request.GET.get("reach", "")
    context = {
        "section": "halts",
        "thrown": [
            {"halt": row, "word": REACH_WORDS[Reach(row.reach)], "may_lift": _may_lift(row, by)} for row in thrown.rows
        ],
        "is_cut": thrown.is_cut,
        "page": fetch_page(rows.exclude(lifted_at=None), prefix="hlt", after=request.GET.get("after", "")),
        "words": {str(reach): word for reach, word in REACH_WORDS.items()},
        "tools": Installation.objects.visible_to(by).order_by("name").values_list("name", flat=True)[:200],
        "versions": _list_versions(by),
        "form": HaltForm(by=by, tenant=request.tenant, initial={"reach": reach, reach: request.GET.get("target", "")}),
        "lift_form": ReasonForm(),
        "lifting": None,
    }
    return render_page(request, "halts/halt_list.html", context | extra, status=status)


def _list_versions(by: Principal) -> list[tuple[str, str]]:
    """(id, name) of the approved ones of what the tenant publishes or has installed, the newest first."""
    here = Q(tool__tenant_id=by.tenant_id) | Q(tool__installations__tenant_id=by.tenant_id)
    rows = ToolVersion.objects.filter(here, review_state=VersionState.APPROVED).distinct().order_by("-pk")
    found = rows.values_list("pk", "tool__name", "version")[:VERSIONS_OFFERED]
    return [(encode("tvn", pk), f"{name} {version}") for pk, name, version in found]


def _may_lift(halt: Halt, by: Principal) -> bool:
    return halt.reach != Reach.HUB or by.may("hub.manage")


@require_GET
@needs("halts.throw")
def halt_list(request: ConsoleRequest) -> HttpResponse:
    """Context: thrown (list of {halt, word, may_lift}), is_cut, page (Page of lifted Halt), words ({reach: word}), tools (ids),
    versions ({id, name}), form (HaltForm, filled in from ?reach= and ?target=), lift_form, lifting (the Halt whose form was not right,
    or None).
    """
    return _page(request, {})


@require_POST
@needs("halts.throw")
def halt_throw(request: ConsoleRequest) -> HttpResponse:
    """POST reach, what it stops in the field of that name (tool, version, agent), reason, and confirm for a tenant (its short name)
    and for the hub.
    """
    form = HaltForm(request.POST, by=request.principal, tenant=request.tenant)
    if form.is_valid():
        data = form.cleaned_data
        reach = Reach(data["reach"])
        if reach in (Reach.HUB, Reach.TENANT) and not is_fresh(request):
            return redirect_to_reauthenticate(request)
        try:
            throw_halt(reach=reach, target=form.read_target(), reason=data["reason"], by=request.principal)
        except Problem as problem:
            add_problem(form, problem, fields={"target": str(reach)})
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
