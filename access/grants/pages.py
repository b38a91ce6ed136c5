"""Pages of grants: given, extended, requested and revoked in the console."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.grants import requests
from access.grants import services as grants
from access.grants.api import STATES, filter_grants
from access.grants.conditions import describe_condition
from access.grants.forms import AnswerForm, AskForm, ExtendForm, GrantForm, ManyForm
from access.models import Agent, Grant, GrantRequest, RequestState
from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm, fill_form, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.ids import decode
from kernel.problems import NotFound, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.forms import Form
    from django.http import HttpResponse

    from access.models.grants import GrantQuerySet
    from kernel.principal import Principal

EVERY_AGENT = "*"


def describe_conditions(of: Grant | GrantRequest) -> list[str]:
    return [describe_condition(each) for each in of.conditions]


@require_GET
@needs("grants.view")
def grant_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Grant with .agent, .budgets), states, agents (for the filters), filters ({state, agent, q}), may_give."""
    filters = {name: request.GET.get(name, "") for name in ("state", "agent", "q")}
    rows = filter_grants(Grant.objects.visible_to(request.principal), filters["state"])
    if filters["agent"]:
        everybodys = filters["agent"] == EVERY_AGENT
        rows = rows.filter(agent=None) if everybodys else rows.filter(agent__name=filters["agent"])
    if filters["q"]:
        rows = rows.filter(tools__icontains=filters["q"])
    context = {
        "section": "grants",
        "page": fetch_page(
            rows.with_chain().prefetch_related("budgets"), prefix="grt", after=request.GET.get("after", "")
        ),
        "filters": filters,
        "states": STATES,
        "agents": Agent.objects.filter(tenant_id=request.principal.tenant_id).order_by("name"),
        "may_give": request.principal.may("grants.give"),
    }
    return render_page(request, "grants/grant_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("grants.give")
def grant_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (GrantForm). POST check: only says what the expression matches."""
    form = fill_form(GrantForm, request, initial=_read_asked(request), by=request.principal)
    if given := submit_form(form, lambda: _give(form, by=request.principal)):
        messages.success(request, gettext("The grant is given. It applies from the next call."))
        return redirect("grant", given.pk)
    context = {"section": "grants", "form": form}
    return render_page(request, "grants/grant_form.html", context, status=422 if form.is_bound else 200)


def _read_asked(request: ConsoleRequest) -> dict[str, str]:
    """What a page that leads here has filled in: tools, and the agent by its id. Another agent than the tenant's is no choice."""
    agent = request.GET.get("agent", "")
    try:
        chosen = str(decode("agt", agent)) if agent else ""
    except ValueError:
        chosen = ""
    return {"tools": request.GET.get("tools", ""), "agent": chosen}


def _give(form: GrantForm, *, by: Principal) -> Grant:
    data = form.cleaned_data
    return grants.give_grant(
        agent_id=None if data["every_agent"] else data["agent"].pk,
        reason=data["reason"],
        calls_limit=data["calls_limit"],
        expires_at=data["expires_at"],
        may_delegate=int(data["may_delegate"]),
        by=by,
        **form.terms(),
    )


def _grant(request: ConsoleRequest, grant_id: UUID) -> Grant:
    rows = Grant.objects.visible_to(request.principal).with_chain().prefetch_related("budgets")
    return rows.get(pk=grant_id)


def _tree(found: Grant) -> list[tuple[int, Grant]]:
    """Where it came from and what became of it: (how deep, grant), each under the one that it was handed on from."""
    below: dict[UUID | None, list[Grant]] = defaultdict(list)
    for each in Grant.objects.handed_on_from(pk=found.pk).with_chain().order_by("pk"):
        below[each.delegated_from_id].append(each)

    def under(grant: Grant, depth: int) -> Iterator[tuple[int, Grant]]:
        yield depth, grant
        for each in below[grant.pk]:
            yield from under(each, depth + 1)

    return [*enumerate(found.chain), *under(found, len(found.chain))]


def _grant_page(request: ConsoleRequest, found: Grant, *, wrong: str = "", form: Form | None = None) -> HttpResponse:
    asked = GrantRequest.objects.filter(grant=found).first()
    context = {
        "section": "grants",
        "grant": found,
        "conditions": describe_conditions(found),
        "tree": _tree(found),
        "asked": asked,
        "revoke_form": form if wrong == "revoke" else ReasonForm(),
        "extend_form": form if wrong == "extend" else ExtendForm(),
        "wrong": wrong,
        "facts": facts_about(request.principal, found.wire_id),
        "may_give": request.principal.may("grants.give"),
    }
    return render_page(request, "grants/grant_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("grants.view")
def grant(request: ConsoleRequest, grant_id: UUID) -> HttpResponse:
    """Context: grant, conditions (sentences), tree ([(depth, Grant with .agent)], itself included), asked (GrantRequest or None),
    revoke_form, extend_form, wrong (which of them has errors), facts, may_give.
    """
    return _grant_page(request, _grant(request, grant_id))


@require_POST
@needs("grants.give")
def grant_revoke(request: ConsoleRequest, grant_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _grant_page(request, _grant(request, grant_id), wrong="revoke", form=form)
    grants.revoke_grant(grant_id=grant_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The grant is revoked. The next call under it is refused."))
    return redirect("grant", grant_id)


@require_POST
@needs("grants.give")
def grant_extend(request: ConsoleRequest, grant_id: UUID) -> HttpResponse:
    form = ExtendForm(request.POST)
    if submit_form(
        form,
        lambda: grants.extend_grant(grant_id=grant_id, by=request.principal, **form.cleaned_data),
        refusals=SchemaInvalid,
    ):
        messages.success(request, gettext("The grant was extended."))
        return redirect("grant", grant_id)
    return _grant_page(request, _grant(request, grant_id), wrong="extend", form=form)


def parse_selected_ids(values: list[str], prefix: str) -> list[UUID]:
    """The ids that were ticked in a list."""
    try:
        return sorted({decode(prefix, value) for value in values})
    except ValueError as error:
        raise NotFound(gettext("One of the selected rows does not exist.")) from error


@require_http_methods(["GET", "POST"])
@needs("grants.give")
def grants_revoke(request: ConsoleRequest) -> HttpResponse:
    """What was ticked in the list, to be confirmed. Context: rows (Grants in force), form (ManyForm), list, ticked."""
    ids = parse_selected_ids((request.POST if request.method == "POST" else request.GET).getlist("grant"), "grt")
    rows: GrantQuerySet = Grant.objects.visible_to(request.principal).filter(pk__in=ids, revoked_at=None)
    found = list(rows.select_related("agent").order_by("-pk")[: grants.MAX_AT_ONCE])
    form = ManyForm(request.POST if request.method == "POST" else None, count=len(found))
    if found and form.is_valid():
        done = grants.revoke_grants(
            grant_ids=[each.pk for each in found], reason=form.cleaned_data["reason"], by=request.principal
        )
        messages.success(
            request, ngettext("%(n)d grant was revoked.", "%(n)d grants were revoked.", done) % {"n": done}
        )
        return redirect("grants")
    context = {"section": "grants", "rows": found, "form": form, "list": "grants", "ticked": "grant"}
    return render_page(request, "grants/grant_revoke_many.html", context, status=422 if form.errors else 200)


# Requests.


@require_GET
@needs("grants.view")
def grant_request_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of GrantRequest with .agent), filters ({state}), states, may_ask."""
    state = request.GET.get("state", "")
    rows = GrantRequest.objects.visible_to(request.principal).select_related("agent")
    if state:
        if state not in RequestState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(state=state)
    context = {
        "section": "grant_requests",
        "page": fetch_page(rows, prefix="grq", after=request.GET.get("after", "")),
        "filters": {"state": state},
        "states": RequestState.values,
        "may_ask": request.principal.may("grants.request"),
    }
    return render_page(request, "grants/grant_request_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("grants.request")
def grant_request_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (AskForm). POST check: only says what the expression matches."""
    form = fill_form(AskForm, request, initial=_read_asked(request), by=request.principal)
    if asked := submit_form(
        form,
        lambda: requests.request_grant(
            agent_id=form.cleaned_data["agent"].pk,
            purpose=form.cleaned_data["purpose"],
            by=request.principal,
            **form.terms(),
        ),
    ):
        messages.success(request, gettext("The request was sent. An operator decides on it."))
        if request.principal.may("grants.view"):
            return redirect("grant_request", asked.pk)
        return redirect("overview")
    context = {"section": "grant_requests", "form": form}
    return render_page(request, "grants/grant_request_form.html", context, status=422 if form.is_bound else 200)


def _request_page(
    request: ConsoleRequest, asked: GrantRequest, *, wrong: str = "", form: Form | None = None
) -> HttpResponse:
    context: dict[str, Any] = {
        "section": "grant_requests",
        "asked": asked,
        "conditions": describe_conditions(asked),
        "form": form if wrong == "approve" else AnswerForm(asked=asked),
        "decline_form": form if wrong == "decline" else ReasonForm(),
        "wrong": wrong,
        "may_answer": request.principal.may("grants.give") and asked.state == RequestState.WAITING,
        "facts": facts_about(request.principal, asked.wire_id),
    }
    return render_page(request, "grants/grant_request.html", context, status=422 if wrong else 200)


def _asked(request: ConsoleRequest, request_id: UUID) -> GrantRequest:
    return GrantRequest.objects.visible_to(request.principal).select_related("agent", "grant").get(pk=request_id)


@require_GET
@needs("grants.view")
def grant_request(request: ConsoleRequest, request_id: UUID) -> HttpResponse:
    """Context: asked (GrantRequest), conditions, form (AnswerForm, filled in), decline_form, wrong, may_answer, facts."""
    return _request_page(request, _asked(request, request_id))


@require_POST
@needs("grants.give")
def grant_request_approve(request: ConsoleRequest, request_id: UUID) -> HttpResponse:
    """Turn a request into a grant, as asked or narrower."""
    asked = _asked(request, request_id)
    form = AnswerForm(request.POST, asked=asked)
    if given := submit_form(
        form,
        lambda: requests.approve_request(
            request_id=request_id,
            by=request.principal,
            **form.terms(),
            **{name: form.cleaned_data[name] for name in ("reason", "calls_limit", "expires_at")},
        ),
        refusals=SchemaInvalid,
    ):
        messages.success(request, gettext("The grant is given. It applies from the next call."))
        return redirect("grant", given.pk)
    return _request_page(request, asked, wrong="approve", form=form)


@require_POST
@needs("grants.give")
def grant_request_decline(request: ConsoleRequest, request_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _request_page(request, _asked(request, request_id), wrong="decline", form=form)
    requests.decline_request(request_id=request_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The request was declined. Your reason was recorded."))
    return redirect("grant_request", request_id)
