"""Pages of chains: how people look at chains of calls in the console, and end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Prefetch
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from evidence.search.related_facts import facts_around
from invocations.chains import orchestration, services
from invocations.chains.answers import group_calls_by_step
from invocations.chains.models import Chain, ChainState, ChainStep
from kernel.components.sentences import translate_sentence
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
def chain_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Chain with .agent and .steps), state, states."""
    state = request.GET.get("state", "")
    rows = (
        Chain.objects.visible_to(request.principal)
        .select_related("agent")
        .prefetch_related(Prefetch("steps", ChainStep.objects.order_by("position")))
    )
    if state:
        if state not in ChainState.values:
            raise SchemaInvalid(gettext("There is no such state to filter by."))
        rows = rows.filter(state=state)
    context = {
        "section": "invocations",
        "page": fetch_page(rows, prefix="chn", after=request.GET.get("after", "")),
        "state": state,
        "states": ChainState.values,
    }
    return render_page(request, "chains/chain_list.html", context, partial="rows")


def _bars(chain: Chain, steps: list[ChainStep], calls: dict[Any, list[Invocation]]) -> list[Step]:
    """Each call of the chain on its axis of time, from where it was made to its end."""
    found = []
    for step in steps:
        for number, call in enumerate(calls.get(step.pk, []), 1):
            begin = (call.created_at - chain.created_at).total_seconds() * 1000
            end = begin if call.finished_at is None else begin + (call.duration_ms or 0)
            name = f"{step.name} ({number})" if step.retries else step.name
            found.append(
                Step(
                    name=f"↩ {name}" if step.is_compensation else name,
                    start_ms=max(0.0, begin),
                    end_ms=max(0.0, end),
                    kind="control" if step.is_compensation else "tool",
                    status="" if call.state == "succeeded" else call.state,
                )
            )
    return sorted(found, key=lambda each: each.start_ms)


@require_GET
@needs("invocations.view")
def chain_detail(request: ConsoleRequest, chain_id: UUID) -> HttpResponse:
    """Context: chain (with .agent), rows (list of {step, calls}), chart (Waterfall or None), facts, problem (class or None),
    may_cancel.
    """
    found = Chain.objects.visible_to(request.principal).select_related("agent").get(pk=chain_id)
    steps, calls = list(found.steps.order_by("position", "-role")), group_calls_by_step(found)
    bars, why_not = _bars(found, steps, calls), ""
    try:
        services.check_can_cancel(found)
    except Problem as problem:
        why_not = translate_sentence(problem.detail)
    context = {
        "section": "invocations",
        "chain": found,
        "rows": [{"step": step, "calls": calls.get(step.pk, [])} for step in steps],
        "chart": lay_out_steps(bars) if bars else None,
        "facts": facts_around(request.principal, found.wire_id, size=200),
        "problem": find_problem_class(found.reason) if found.reason else None,
        "may_cancel": request.principal.may("invocations.cancel") and not why_not,
    }
    return render_page(request, "chains/chain_detail.html", context)


@require_POST
@needs("invocations.cancel")
def chain_cancel(request: ConsoleRequest, chain_id: UUID) -> HttpResponse:
    """Make no more of its calls; what was done is undone where the plan says how."""
    services.cancel_chain(chain_id=chain_id, by=request.principal)
    orchestration.continue_chain(chain_id)
    messages.info(
        request, gettext("The chain makes no further steps. Completed steps are undone where the plan says how.")
    )
    return redirect("chain", chain_id)
