"""Pages of agent runs: how people look at runs in the console, and end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Sum
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.sign_in.adapters import recently_authenticated
from evidence.search.related_facts import facts_around
from invocations.agent_runs import orchestration, services
from invocations.agent_runs.answers import (
    find_last_answered_call,
    group_calls_by_step,
    has_stored_answers,
    list_answered_tool_calls,
    list_sources,
    reveal_run_values,
)
from invocations.agent_runs.models import AgentRun, AgentRunState, AgentRunStep, AgentRunStepRole
from invocations.call_costs.services import find_currency
from kernel.components.forms import ReasonForm, add_problem
from kernel.components.waterfall import Step, lay_out_steps
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem, SchemaInvalid, find_problem_class

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from invocations.agent_runs.answers import RevealedRun
    from invocations.models import Invocation


@require_GET
@needs("invocations.view")
def run_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of AgentRun with .agent, .micros and .unpriced), state, states, currency."""
    state = request.GET.get("state", "")
    rows = AgentRun.objects.visible_to(request.principal).select_related("agent")
    if state:
        if state not in AgentRunState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(state=state)
    context = {
        "section": "invocations",
        "page": fetch_page(
            rows.annotate(micros=Sum("steps__cost_micros"), unpriced=Sum("steps__unpriced")),
            prefix="run",
            after=request.GET.get("after", ""),
        ),
        "state": state,
        "states": AgentRunState.values,
        "currency": find_currency(request.principal.tenant_id),
    }
    return render_page(request, "agent_runs/agent_run_list.html", context, partial="rows")


def _build_bars(run: AgentRun, steps: list[AgentRunStep], calls: dict[UUID, list[Invocation]]) -> list[Step]:
    """Each call of the run on its axis of time, from where it was made to its end."""
    found = []
    for step in steps:
        for call in calls.get(step.pk, []):
            begin = (call.created_at - run.created_at).total_seconds() * 1000
            end = begin if call.finished_at is None else begin + (call.duration_ms or 0)
            found.append(
                Step(
                    name=f"{step.turn} · {step.tool}",
                    start_ms=max(0.0, begin),
                    end_ms=max(0.0, end),
                    kind="control" if step.role == AgentRunStepRole.MODEL else "tool",
                    status="" if call.state == "succeeded" else call.state,
                )
            )
    return sorted(found, key=lambda each: each.start_ms)


def _page(request: ConsoleRequest, run: AgentRun, form: ReasonForm, *, reveals: bool = False) -> HttpResponse:
    steps, calls = list(run.steps.order_by("position")), group_calls_by_step(run)
    bars = _build_bars(run, steps, calls)
    # While it goes on the page looks again, and would take away what somebody types.
    answered = find_last_answered_call(steps, calls) if run.is_final else None
    tool_calls = list_answered_tool_calls(steps, calls)
    sources = list_sources(tool_calls)
    revealed: RevealedRun | None = None
    if reveals and answered is not None:
        try:
            reason = form.cleaned_data["reason"]
            revealed = reveal_run_values(answered, tool_calls, reason=reason, by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
    context: dict[str, Any] = {
        "section": "invocations",
        "run": run,
        "rows": [{"step": step, "calls": calls.get(step.pk, [])} for step in steps],
        "cost": services.sum_cost(run),
        "currency": find_currency(request.principal.tenant_id),
        "chart": lay_out_steps(bars) if bars else None,
        "facts": facts_around(request.principal, run.wire_id, size=200),
        "problem": find_problem_class(run.reason) if run.reason else None,
        "may_cancel": request.principal.may("invocations.cancel") and _can_be_cancelled(run),
        "answered": answered,
        "sources": sources,
        "tool_calls": tool_calls,
        "is_kept": answered is not None and has_stored_answers([answered, *tool_calls]),
        "may_reveal": request.principal.may("evidence.reveal"),
        "revealed": revealed,
        "form": form,
    }
    return render_page(
        request,
        "agent_runs/agent_run_detail.html",
        context,
        partial="values",
        status=422 if form.errors else 200,
    )


def _run(request: ConsoleRequest, run_id: UUID) -> AgentRun:
    return AgentRun.objects.visible_to(request.principal).select_related("agent").get(pk=run_id)


@require_GET
@needs("invocations.view")
def run_detail(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Context: run (with .agent), rows (list of {step, calls}), cost, chart (Waterfall or None), facts, problem (class or None),
    may_cancel, answered (Invocation or None), sources (of RunSource), tool_calls (that have answered), is_kept
    (whether any value of them is), may_reveal, revealed (None or RevealedRun: shown once, after a
    POST), form (ReasonForm).
    """
    return _page(request, _run(request, run_id), ReasonForm())


@require_POST
@needs("evidence.reveal")
@recently_authenticated
def run_values(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Show the answer and what the tools answered, once. The access is a fact before anything is shown."""
    run, form = _run(request, run_id), ReasonForm(request.POST)
    return _page(request, run, form, reveals=form.is_valid())


def _can_be_cancelled(run: AgentRun) -> bool:
    try:
        services.check_can_cancel(run)
    except Problem:
        return False
    return True


@require_POST
@needs("invocations.cancel")
def run_cancel(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Make no more of its calls, and end those that are open."""
    services.cancel_run(run_id=run_id, by=request.principal)
    orchestration.continue_run(run_id)
    messages.info(request, gettext("The run makes no further calls. What its tools have done stays done."))
    return redirect("agent_run", run_id)
