"""Pages of calls: how people browse calls and their timelines in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.sign_in.adapters import recently_authenticated
from evidence.archives.leaves import load_leaves_at_hand
from evidence.kinds import BEGINS, PAIR, Kind
from evidence.leaves.call_ends import End
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.search.related_facts import attach_free_text, facts_naming
from evidence.services import reveal_values
from invocations import services
from invocations.artifacts.pages import list_artifacts, sign_artifact_tokens
from invocations.call_story import tell_story
from invocations.end.egress_report import describe_denial_reason
from invocations.models import Invocation, State
from invocations.proposals.proposal_links import list_proposed_calls
from invocations.revealed_values import RevealedValue, present_value
from kernel.components.forms import ReasonForm, add_problem
from kernel.components.labels import read_outcome
from kernel.components.waterfall import Step, lay_out_steps
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import Problem

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


MAX_FACTS = 200  # of one call on its page, the last ones; all of them are in the list of facts
MAX_SEGMENTS = 50  # of what a long run said, the last ones
WAITING_STEPS = ("queue.wait", "consent.wait")


def build_chart_steps(invocation: Invocation) -> list[Step]:
    return [
        Step(
            name=step["name"],
            start_ms=step["begin_ms"],
            end_ms=step["end_ms"],
            kind=step["kind"],
            status="" if step["status"] == "ok" else read_outcome(step["status"], invocation.reason),
            note=step["note"],
            depth=1
            if step["name"].startswith("sandbox.") and step["name"] not in ("sandbox.execute", "sandbox.prepare")
            else 0,
            waiting=step["name"] in WAITING_STEPS,
        )
        for step in invocation.steps
    ]


def _pair(facts: list[Fact]) -> dict[str, dict[str, Any] | None]:
    """Begin and End with their leaves as data; empty where one cannot be had, which the fact says (``leaf_problem``)."""
    load_leaves_at_hand(facts)
    found: dict[str, dict[str, Any] | None] = {"begin": None, "end": None}
    for fact in facts:
        if fact.kind in PAIR:
            side = "begin" if fact.kind in BEGINS else "end"
            found[side] = {"fact": fact, "leaf": fact.content, "hash": bytes(fact.leaf_hash).hex()}
    return found


def _data(side: dict[str, Any] | None) -> dict[str, Any]:
    return (side["leaf"].get("data") or {}) if side else {}


def _reached(end: dict[str, Any] | None) -> dict[str, Any]:
    """The connections of a call, as its End has them: {rows, more, elsewhere, known, service}; empty when there were none."""
    said = End.from_data(end["leaf"].get("data") if end else None)
    rows = [each | {"why_told": describe_denial_reason(each["why"])} for each in said.connections or ()]
    more = said.all_connections.count - len(rows) if said.all_connections else 0
    elsewhere = said.connections_elsewhere or 0
    known = said.connections_known is not False
    if known and not (rows or elsewhere):
        return {}
    return {"rows": rows, "more": more, "elsewhere": elsewhere, "known": known, "service": said.service}


def _page(
    request: ConsoleRequest,
    invocation: Invocation,
    form: ReasonForm,
    revealed: list[RevealedValue] | None = None,
    opened: list[dict[str, Any]] | None = None,
    *,
    tab: str = "story",
) -> HttpResponse:
    rows = Fact.objects.visible_to(request.principal).of_calls(invocation.pk).order_by("id")
    if not request.principal.may("evidence.view"):
        # Who looked into a call, and why, is for those who may browse evidence.
        rows = rows.filter(kind__in=(*PAIR, Kind.INVOCATION_SEGMENT))
    pair = _pair(list(rows.filter(kind__in=PAIR)))
    context = {
        "section": "invocations",
        "invocation": invocation,
        "tab": tab,
        "here": reverse("invocation_record" if tab == "record" else "invocation", args=[invocation.pk]),
        "story": tell_story(invocation, _data(pair["begin"]), _data(pair["end"]), by=request.principal),
        "chart": lay_out_steps(build_chart_steps(invocation), instant=request.GET.get("steps") == "all")
        if invocation.steps
        else None,
        "facts": _facts_of(request, invocation, list(rows.reverse()[:MAX_FACTS])),
        "pair": pair,
        "unread": next(
            (side["fact"].leaf_problem for side in pair.values() if side and side["fact"].leaf_problem), None
        ),
        "proposed_calls": list_proposed_calls(invocation),
        "may_search": request.principal.may("evidence.view"),
        "attempts": invocation.attempts.order_by("number"),
        "reached": _reached(pair["end"]),
        "snapshots": _snapshots(invocation),
        "callback": invocation.callbacks.first() if request.principal.may("agents.view") else None,
        "artifacts": list_artifacts(invocation, request.principal),
        "may_remove_artifacts": request.principal.may("files.manage"),
        "opened": opened or [],
        "may_reveal": request.principal.may("evidence.reveal"),
        "may_replay": invocation.is_final and request.principal.may("invocations.replay"),
        "may_cancel": not invocation.is_final and request.principal.may("invocations.cancel"),
        "may_resolve": invocation.state == State.OUTCOME_UNKNOWN
        and not invocation.resolution
        and request.principal.may("invocations.resolve"),
        "form": form,
        "revealed": revealed,
    }
    return render_page(
        request, "invocations/invocation_detail.html", context, partial="values", status=422 if form.errors else 200
    )


def _facts_of(request: ConsoleRequest, invocation: Invocation, own: list[Fact]) -> list[Fact]:
    """In their order; for who may browse evidence with those of others that name the call: a replay of it, an export, an erasure."""
    others = facts_naming(request.principal, invocation.wire_id) if request.principal.may("evidence.view") else []
    return attach_free_text(sorted({fact.pk: fact for fact in (*others, *own)}.values(), key=lambda fact: fact.pk))


def _snapshots(invocation: Invocation) -> list[Snapshot]:
    """What is stored of a call, in its order."""
    rows = Snapshot.objects.filter(invocation_id=invocation.pk, tenant_id=invocation.tenant_id)
    segments = rows.filter(kind=SnapshotKind.SEGMENT).order_by("-number")[:MAX_SEGMENTS]
    return sorted([*rows.exclude(kind=SnapshotKind.SEGMENT), *segments], key=lambda row: row.pk)


def _invocation(request: ConsoleRequest, invocation_id: UUID) -> Invocation:
    rows = Invocation.objects.visible_to(request.principal)
    rows = rows.select_related("agent", "version__tool", "grant", "consent", "proposed_by")
    return rows.get(pk=invocation_id)


@require_GET
@needs("invocations.view")
def invocation_detail(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """Context: invocation (with .agent, .version, .grant, .consent), tab (``story`` or ``record``), here (its address),
    story (CallStory), chart (a Waterfall or None; ``?steps=all`` with steps of 0 ms), facts, pair ({begin, end}: each None or
    {fact, leaf, hash}), unread (why one of their leaves cannot be had, or None), attempts, reached ({rows, more, elsewhere} or
    empty), proposed_calls (of its answer's proposals), may_search, snapshots, may_reveal, may_cancel, may_resolve, form (ReasonForm),
    callback (CallbackDelivery or None), artifacts (rows, for those who may reveal or remove them), may_remove_artifacts, opened
    ({row, word} for each of them, once they are revealed), revealed (None, or a list of RevealedValue: shown once, after a POST).
    """
    return _page(request, _invocation(request, invocation_id), ReasonForm())


@require_GET
@needs("invocations.view")
def invocation_record(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """The tab of Begin and End as they are sealed. Context: that of :func:`invocation_detail`."""
    return _page(request, _invocation(request, invocation_id), ReasonForm(), tab="record")


@require_POST
@needs("invocations.cancel")
def invocation_cancel(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """End a call that waits or runs."""
    ended = services.cancel_and_wait(invocation_id=invocation_id, by=request.principal)
    if ended.is_final:
        messages.success(request, gettext("This call has ended."))
    else:
        messages.info(request, gettext("This call is being ended."))
    return redirect("invocation", invocation_id)


@require_POST
@needs("evidence.reveal")
@recently_authenticated
def invocation_values(request: ConsoleRequest, invocation_id: UUID) -> HttpResponse:
    """Show the sealed values of a call, once. The access is a fact before anything is shown."""
    found = _invocation(request, invocation_id)
    form = ReasonForm(request.POST)
    revealed: list[RevealedValue] | None = None
    opened: list[dict[str, Any]] = []
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            revealed = [
                present_value(
                    snapshot, reveal_values(snapshot=snapshot, reason=reason, by=request.principal), found.version
                )
                for snapshot in _snapshots(found)
            ]
            opened = sign_artifact_tokens(list_artifacts(found, request.principal), reason=reason, by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
    return _page(request, found, form, revealed, opened)
