"""Pages of agent runs: how people look at runs in the console, and end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Sum
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from evidence.search.related_facts import facts_around
from invocations.agent_runs import orchestration, services
from invocations.agent_runs.answers import group_calls_by_step
from invocations.agent_runs.models import AgentRun, AgentRunState, AgentRunStep, AgentRunStepRole
from kernel.components.waterfall import Step, lay_out_steps
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import Problem, SchemaInvalid, find_problem_class

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from invocations.models import Invocation


@require_GET
@needs("invocations.view")
def run_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of AgentRun with .agent, .micros and .unpriced), state, states."""
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


@require_GET
@needs("invocations.view")
def run_detail(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Context: run (with .agent), rows (list of {step, calls}), cost, chart (Waterfall or None), facts, problem (class or None),
    may_cancel.
    """
    run = AgentRun.objects.visible_to(request.principal).select_related("agent").get(pk=run_id)
    steps, calls = list(run.steps.order_by("position")), group_calls_by_step(run)
    bars = _build_bars(run, steps, calls)
    context: dict[str, Any] = {
        "section": "invocations",
        "run": run,
        "rows": [{"step": step, "calls": calls.get(step.pk, [])} for step in steps],
        "cost": services.sum_cost(run),
        "chart": lay_out_steps(bars) if bars else None,
        "facts": facts_around(request.principal, run.wire_id, size=200),
        "problem": find_problem_class(run.reason) if run.reason else None,
        "may_cancel": request.principal.may("invocations.cancel") and _can_be_cancelled(run),
    }
    return render_page(request, "agent_runs/agent_run_detail.html", context)


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
