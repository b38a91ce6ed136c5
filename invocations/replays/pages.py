"""Pages of replays: how people have calls replayed in the console, and see what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Case, When
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.sign_in.adapters import recently_authenticated
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.problems import ValuesErased
from evidence.search.related_facts import attach_free_text
from evidence.services import reveal_values
from invocations.models import Invocation
from invocations.replays import services
from invocations.replays.forms import PeriodForm, ReplayForm
from invocations.replays.labels import FIELDS, NOTE, WHAT, WHY
from invocations.replays.models import Replay, ReplayState, Rerun
from kernel.components.forms import ReasonForm, add_problem, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_excerpt, fetch_page
from kernel.ids import decode, encode
from kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from django.http import HttpResponse

MOST_SHOWN = 200  # calls of a replay on its page
# Those that do not match come first.
ORDER = Case(
    *(When(verdict=verdict, then=place) for place, verdict in enumerate(("differs", "not_deterministic", "cannot"))),
    default=3,
)


@require_GET
@needs("invocations.replay")
def replay_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Replay), state, states, whats."""
    state = request.GET.get("state", "")
    rows = Replay.objects.visible_to(request.principal).select_related("invocation", "policy", "version")
    if state:
        if state not in ReplayState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(state=state)
    page = fetch_page(rows, prefix="rpl", after=request.GET.get("after", ""))
    context = {"section": "invocations", "page": page, "state": state, "states": ReplayState.values}
    return render_page(request, "replays/replay_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("invocations.replay")
def replay_new(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """GET version: chosen beforehand. Context: invocation, form (ReplayForm)."""
    rows = Invocation.objects.visible_to(request.principal).select_related("agent", "version__tool")
    invocation = rows.get(pk=invocation_id)
    form = ReplayForm(
        request.POST if request.method == "POST" else None,
        invocation=invocation,
        version=request.GET.get("version", ""),
        by=request.principal,
    )
    if row := submit_form(
        form, lambda: services.replay_call(invocation_id=invocation_id, by=request.principal, **form.cleaned_data)
    ):
        return redirect("replay", row.pk)
    context = {"section": "invocations", "invocation": invocation, "form": form}
    return render_page(request, "replays/replay_form.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@needs("invocations.replay")
def replay_period(request: ConsoleRequest) -> HttpResponse:
    """Context: form (PeriodForm)."""
    form = PeriodForm(request.POST if request.method == "POST" else None, by=request.principal)
    if row := submit_form(form, lambda: services.replay_period(by=request.principal, **form.period())):
        return redirect("replay", row.pk)
    context = {"section": "invocations", "form": form}
    return render_page(request, "replays/replay_period.html", context, status=422 if form.errors else 200)


def _replay(request: ConsoleRequest, replay_id: UUID) -> Replay:
    rows = Replay.objects.visible_to(request.principal).select_related("invocation", "policy", "version__tool")
    return rows.get(pk=replay_id)


@require_GET
@needs("invocations.replay")
def replay_detail(request: ConsoleRequest, replay_id: UUID) -> HttpResponse:
    """Context: replay, what, findings (those that differ first), counts, whys ({word, count}), calls (named in the result), facts,
    reruns (list of {row, why}), is_cut, one ({row, why, notes} of a single call), simulation, may_cancel, may_reveal, form
    (ReasonForm).
    """
    row = _replay(request, replay_id)
    reruns = fetch_excerpt(row.reruns.select_related("invocation").order_by(ORDER, "pk"), MOST_SHOWN)
    result = row.result
    context = {
        "section": "invocations",
        "replay": row,
        "what": WHAT[row.what],
        "findings": _findings(result.get("findings", [])),
        "counts": sorted(result.get("counts", {}).items()),
        "whys": [(WHY.get(word, word), count) for word, count in sorted(result.get("whys", {}).items())],
        "fields": [(FIELDS.get(word, word), count) for word, count in sorted(result.get("fields", {}).items())],
        "changes": sorted(result.get("changes", {}).items()),
        "calls": [
            {
                "id": UUID(each["invocation"]),
                "wire_id": encode("inv", UUID(each["invocation"])),
                "fields": [FIELDS.get(name, name) for name in each["fields"]],
            }
            for each in result.get("calls", [])
        ],
        "reruns": [_shown(each) for each in reruns.rows],
        "is_cut": reruns.is_cut,
        "one": _shown(reruns.rows[0]) if row.invocation_id and reruns.rows else None,
        "simulation": _linked(result.get("simulation")),
        "may_cancel": not row.is_final and row.cancel_asked_at is None,
        "may_reveal": request.principal.may("evidence.reveal"),
        "form": ReasonForm(),
        "facts": attach_free_text(
            Fact.objects.visible_to(request.principal).filter(subject=row.wire_id).order_by("-id")[:20]
        ),
    }
    return render_page(request, "replays/replay_detail.html", context)


def _linked(simulation: dict[str, Any] | None) -> dict[str, Any] | None:
    """With the addresses of the calls that it names."""
    for group in simulation["groups"] if simulation else ():
        for each in group["examples"]:
            each["to"] = reverse("invocation", args=[decode("inv", each["invocation"])])
    return simulation


def _shown(row: Rerun) -> dict[str, Any]:
    return {"row": row, "why": WHY.get(row.why, ""), "notes": [NOTE.get(note, note) for note in row.notes]}


def _findings(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    order = ("differs", "not_kept", "equal")
    named = [each | {"name": FIELDS.get(each["field"], each["field"])} for each in said]
    return sorted(named, key=lambda each: order.index(str(each["verdict"])))


def _call_page(
    request: ConsoleRequest, replay_id: UUID, invocation_id: UUID, form: ReasonForm, value: Any = None
) -> HttpResponse:
    row = _replay(request, replay_id)
    rerun = row.reruns.select_related("invocation").get(invocation_id=invocation_id)
    context = {
        "section": "invocations",
        "replay": row,
        "one": _shown(rerun),
        "value": value,
        "may_reveal": request.principal.may("evidence.reveal"),
        "form": form,
    }
    return render_page(
        request, "replays/replay_call.html", context, partial="values", status=422 if form.errors else 200
    )


@require_GET
@needs("invocations.replay")
def replay_call(request: ConsoleRequest, replay_id: UUID, invocation_id: UUID) -> HttpResponse:
    """Context: replay, one ({row, why, notes}), value (None, or both sides and their differences: shown once, after a POST),
    may_reveal, form (ReasonForm).
    """
    return _call_page(request, replay_id, invocation_id, ReasonForm())


@require_POST
@needs("evidence.reveal")
@recently_authenticated
def replay_values(request: ConsoleRequest, replay_id: UUID, invocation_id: UUID) -> HttpResponse:
    """Show what the replay of a call said beside what the call said, once. The access is a fact before anything is shown."""
    form, value = ReasonForm(request.POST), None
    row = _replay(request, replay_id).reruns.get(invocation_id=invocation_id)
    if form.is_valid():
        rows = Snapshot.objects.filter(tenant_id=request.principal.tenant_id, invocation_id=invocation_id)
        snapshot = rows.filter(kind=SnapshotKind.REPLAY, number=row.number).first()
        try:
            if snapshot is None:
                raise ValuesErased(gettext("The output of this replay is no longer kept."))
            value = reveal_values(snapshot=snapshot, reason=form.cleaned_data["reason"], by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
    return _call_page(request, replay_id, invocation_id, form, value)


@require_POST
@needs("invocations.replay")
def replay_cancel(request: ConsoleRequest, replay_id: UUID) -> HttpResponse:
    """End a replay; what it has found stays."""
    services.cancel_replay(replay_id=replay_id, by=request.principal)
    messages.info(request, gettext("The replay is being ended. Its findings are kept."))
    return redirect("replay", replay_id)
