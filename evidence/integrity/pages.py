"""Pages of integrity: whether the log is whole, and having it verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from evidence.integrity.alarms import SHARED, list_alarms, verification_for
from evidence.integrity.findings import FindingCode
from evidence.integrity.forms import RangeForm
from evidence.integrity.services import ask_verification
from evidence.integrity.state import load_integrity_state
from evidence.models import Checkpoint, Fact, Verification
from evidence.witnesses.anchors import load_anchor_statuses
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

CHECKPOINTS, VERIFICATIONS = 10, 10
SCOPE = ("since", "until", "who")


def _page(request: ConsoleRequest, form: RangeForm) -> HttpResponse:
    tenant_id = request.principal.tenant_id
    rows = Verification.objects.filter(tenant_id=tenant_id).order_by("-pk")
    verifications, state = list(rows[:VERIFICATIONS]), load_integrity_state(tenant_id)
    context = {
        "section": "integrity",
        "state": state,
        "alarms": list_alarms(tenant_id),
        "anchors": load_anchor_statuses(),
        "checkpoints": list(Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-size")[:CHECKPOINTS]),
        "verifications": verifications,
        "running": any(row.asked_by and row.finished_at is None for row in verifications),
        "form": form,
        "command": f"toolhub-verify exp_….zip --key '{state.keys[0]}' --older checkpoint.txt" if state.keys else "",
    }
    status = 422 if form.is_bound else 200
    return render_page(request, "integrity/integrity.html", context, partial="verifications", status=status)


@require_GET
@needs("evidence.view")
def integrity(request: ConsoleRequest) -> HttpResponse:
    """Context: state (State of the log), alarms (of it, and of those that all share), anchors (list of Seen), checkpoints,
    verifications, running (whether to look again soon), form (RangeForm), command (how to verify a bundle).
    """
    return _page(request, RangeForm(by=request.principal))


@require_POST
@needs("evidence.view")
def verification_new(request: ConsoleRequest) -> HttpResponse:
    """POST since, until and who, or start and stop; of who manages the hub also name, of a log that all tenants share."""
    form = RangeForm(request.POST, by=request.principal)
    if row := submit_form(form, lambda: ask_verification(by=request.principal, **form.asked())):
        messages.success(request, gettext("The log is being verified."))
        asked = {name: request.POST[name] for name in SCOPE if request.POST.get(name)}
        return redirect(reverse("verification", args=[row.pk]) + (f"?{urlencode(asked)}" if asked else ""))
    return _page(request, form)


def _manages_hub(by: Principal, permission: str, *, verification_id: UUID) -> bool:
    """Who manages the hub looks after the logs that are no tenant's, whatever they may see of their own tenant's."""
    del permission
    return by.may("hub.manage") and verification_for(by, verification_id).tenant_id in SHARED


@require_GET
@needs("evidence.view", held=_manages_hub)
def verification(request: ConsoleRequest, verification_id: UUID) -> HttpResponse:
    """``?since=&until=&who=``: whose facts they were. Context: row (Verification), log (in words, of one that all tenants share),
    findings (list of {index, label, detail, fact}), scope (the query of an export of the same facts, or ""), facts.
    """
    by = request.principal
    row = verification_for(by, verification_id)
    context = {
        "section": "integrity",
        "row": row,
        "log": SHARED.get(row.tenant_id, ""),
        "findings": _with_facts(row),
        "scope": urlencode({name: request.GET[name] for name in SCOPE if request.GET.get(name)}),
        "facts": Fact.objects.visible_to(by).filter(subject=row.wire_id).order_by("id"),
    }
    return render_page(request, "integrity/verification_detail.html", context, partial="verification")


def _with_facts(row: Verification) -> list[dict[str, Any]]:
    """Each finding with its words, and the tenant's fact that is at its leaf, if there is one."""
    own = row.tenant_id not in SHARED  # the facts of the hub itself are no tenant's
    indexes = [each["index"] for each in row.findings if own and each["index"] is not None]
    facts = Fact.objects.filter(tenant_id=row.tenant_id, seal__tenant_id=row.tenant_id, seal__leaf_index__in=indexes)
    found = {fact.seal.leaf_index: fact for fact in facts.select_related("seal").defer("leaf")}
    return [
        each | {"label": FindingCode(each["code"]).label, "fact": found.get(each["index"])} for each in row.findings
    ]


@require_GET
@needs("evidence.view")
def checkpoint_note(request: ConsoleRequest, size: int) -> HttpResponse:
    """The note of a checkpoint, to be kept."""
    row = Checkpoint.objects.get(tenant_id=request.principal.tenant_id, size=size)
    response = HttpResponse(row.note, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="checkpoint-{row.size}.txt"'
    response.headers["Cache-Control"] = "no-store"
    return response
