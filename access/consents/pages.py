"""Pages of consents: what waits for a person, and decisions about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.consents import services
from access.grants.forms import DecisionForm, ManyForm
from access.grants.pages import parse_selected_ids
from access.models import Agent, Consent, ConsentMode, ConsentState, GrantRequest, RequestState
from access.problems import FailureNotSeen
from evidence.search.related_facts import facts_around
from invocations.approvals.consent_review import load_consent_review, make_dry_run
from invocations.approvals.failed_dry_runs import find_those_that_failed_dry
from invocations.models import Invocation, State
from kernel.components.forms import add_problem
from kernel.components.sentences import translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import Excerpt, fetch_excerpt, fetch_page
from kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpResponse

MAX_WAITING = 100


@require_GET
@needs("consents.view")
def approvals(request: ConsoleRequest) -> HttpResponse:
    """Context: consents ({consent, held, failed}: waiting, soonest end first), is_cut (bool: there are more), requests (Excerpt of
    GrantRequest: those that wait, or None).
    """
    by = request.principal
    waiting = _list_waiting(request)
    rows = waiting.rows
    held = set(
        Invocation.objects.visible_to(by)
        .filter(state=State.HELD, consent_id__in=[row.pk for row in rows])
        .values_list("consent_id", flat=True)
    )
    failed = find_those_that_failed_dry(rows)
    requests = GrantRequest.objects.visible_to(by).filter(state=RequestState.WAITING).select_related("agent")
    context = {
        "section": "approvals",
        "consents": [{"consent": row, "held": row.pk in held, "failed": row.pk in failed} for row in rows],
        "is_cut": waiting.is_cut,
        "requests": fetch_excerpt(requests.order_by("pk"), MAX_WAITING) if by.may("grants.view") else None,
    }
    return render_page(request, "consents/approval_list.html", context, partial="rows")


@require_GET
@needs("consents.view")
def consent_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Consent with .agent), filters ({state, tool, mode, agent}), states, modes, agents, may_decide."""
    filters = {name: request.GET.get(name, "") for name in ("state", "tool", "mode", "agent")}
    rows = Consent.objects.visible_to(request.principal).in_state(filters["state"]).select_related("agent")
    if filters["mode"]:
        if filters["mode"] not in ConsentMode.values:
            raise SchemaInvalid(gettext("There is no such kind of consent to filter by."))
        rows = rows.filter(mode=filters["mode"])
    if filters["tool"]:
        rows = rows.filter(tool__icontains=filters["tool"])
    if filters["agent"]:
        rows = rows.filter(agent__name=filters["agent"])
    context = {
        "section": "consents",
        "page": fetch_page(rows, prefix="cns", after=request.GET.get("after", "")),
        "filters": filters,
        "states": ConsentState.values,
        "modes": ConsentMode.values,
        "agents": Agent.objects.filter(tenant_id=request.principal.tenant_id).order_by("name"),
        "may_decide": request.principal.may("consents.decide"),
    }
    return render_page(request, "consents/consent_list.html", context, partial="rows")


def _why_not(request: ConsoleRequest, consent: Consent) -> str:
    """Why this person does not decide on this request; empty when they may."""
    try:
        services.check_can_decide(consent, by=request.principal)
    except Problem as problem:
        return translate_sentence(problem.detail)
    return ""


def _list_waiting(request: ConsoleRequest) -> Excerpt[Consent]:
    """What waits for anybody, soonest end first."""
    waiting = Consent.objects.visible_to(request.principal).in_state(ConsentState.REQUESTED).select_related("agent")
    return fetch_excerpt(waiting.order_by("expires_at", "pk"), MAX_WAITING)


def _order(consent: Consent) -> tuple[datetime, UUID]:
    return consent.expires_at or consent.created_at, consent.pk


def _find_next(request: ConsoleRequest, consent: Consent) -> Consent | None:
    """The request after this one that this person may decide on; behind the last the first again."""
    others = [row for row in _list_waiting(request).rows if row.pk != consent.pk]
    others.sort(key=lambda row: (_order(row) < _order(consent), _order(row)))
    return next(services.select_decidable(others, by=request.principal), None)


def _page(
    request: ConsoleRequest, consent: Consent, form: DecisionForm | None = None, *, wrong: str = ""
) -> HttpResponse:
    why_not, state = _why_not(request, consent), consent.shown_state
    may_approve = state == ConsentState.REQUESTED and not why_not
    only_dry_run = bool(request.htmx) and request.htmx.target == "dry-run"
    case = load_consent_review(consent, by=request.principal, may_see=may_approve, open_arguments=not only_dry_run)
    context = {
        "section": "approvals" if state == ConsentState.REQUESTED else "consents",
        "consent": consent,
        "case": case,
        "form": form or DecisionForm(consent=consent, modes=case.modes),
        "wrong": wrong,
        "why_not": why_not if state == ConsentState.REQUESTED else "",
        "following": _find_next(request, consent) if may_approve and not only_dry_run else None,
        "may_approve": may_approve,
        "may_revoke": state == ConsentState.APPROVED and request.principal.may("consents.decide"),
        "facts": facts_around(request.principal, consent.wire_id),
    }
    partial = "dry-run" if only_dry_run else "decision-panel"
    return render_page(request, "consents/consent_detail.html", context, partial=partial, status=422 if wrong else 200)


def _consent(request: ConsoleRequest, consent_id: UUID) -> Consent:
    return Consent.objects.visible_to(request.principal).select_related("agent").get(pk=consent_id)


@require_GET
@needs("consents.view")
def consent(request: ConsoleRequest, consent_id: UUID) -> HttpResponse:
    """Context: consent (with .agent, .shown_state), case (approving.Case), form (DecisionForm), wrong (the decision whose form has
    errors), why_not (sentence or ""), following (the next Consent that this person may decide on, or None), may_approve, may_revoke,
    facts.
    """
    return _page(request, _consent(request, consent_id))


@require_POST
@needs("consents.decide")
def consent_decide(request: ConsoleRequest, consent_id: UUID) -> HttpResponse:
    """POST decision (approve, deny, revoke) and reason; with approve also mode, amount and unit."""
    found = _consent(request, consent_id)
    decision = request.POST.get("decision", "")
    form = DecisionForm(request.POST, consent=found, modes=ConsentMode.values)
    if not form.is_valid():
        return _page(request, found, form, wrong=decision or "approve")
    decide = {
        "approve": services.approve_consent,
        "deny": services.deny_consent,
        "revoke": services.revoke_consent,
    }[form.cleaned_data["decision"]]
    try:
        done = decide(
            consent_id=consent_id, reason=form.cleaned_data["reason"], by=request.principal, **form.read_attenuation()
        )
    except (SchemaInvalid, FailureNotSeen) as problem:
        add_problem(form, problem)
        return _page(request, found, form, wrong=form.cleaned_data["decision"])
    told = {"approved": gettext("Approved."), "denied": gettext("Denied."), "revoked": gettext("Revoked.")}
    said = told[done.state] + " " + gettext("Your decision and its reason were recorded.")
    following = None if done.state == ConsentState.REVOKED else _find_next(request, found)
    if following is not None:
        said += " " + gettext("This is the next request that waits.")
    messages.success(request, said)
    return redirect("consent", consent_id if following is None else following.pk)


@require_POST
@needs("consents.decide")
def consent_try(request: ConsoleRequest, consent_id: UUID) -> HttpResponse:
    """Try the call dry; the page shows what came of it."""
    make_dry_run(consent_id=consent_id, by=request.principal)
    return redirect("consent", consent_id)


@require_http_methods(["GET", "POST"])
@needs("consents.decide")
def consents_revoke(request: ConsoleRequest) -> HttpResponse:
    """What was ticked in the list, to be confirmed. Context: rows (approved Consents), form (ManyForm), list, ticked."""
    ids = parse_selected_ids((request.POST if request.method == "POST" else request.GET).getlist("consent"), "cns")
    rows = Consent.objects.visible_to(request.principal).in_state(ConsentState.APPROVED).filter(pk__in=ids)
    found = list(rows.select_related("agent").order_by("-pk")[: services.MAX_AT_ONCE])
    form = ManyForm(request.POST if request.method == "POST" else None, count=len(found))
    if found and form.is_valid():
        done = services.revoke_consents(
            consent_ids=[each.pk for each in found], reason=form.cleaned_data["reason"], by=request.principal
        )
        messages.success(
            request, ngettext("%(n)d consent was revoked.", "%(n)d consents were revoked.", done) % {"n": done}
        )
        return redirect("consents")
    context = {"section": "consents", "rows": found, "form": form, "list": "consents", "ticked": "consent"}
    return render_page(request, "consents/consent_revoke_many.html", context, status=422 if form.errors else 200)
