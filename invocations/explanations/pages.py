"""Pages of explanations: how a person sees why an agent can, or cannot, call a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from access.grants.requests import request_grant
from access.models import Agent, GrantRequest, RequestState
from invocations.explanations.services import describe_steps, explain_call, list_conditions, suggest_changes
from kernel.components.sentences import translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.ids import decode
from kernel.problems import NotFound
from registry.models import Installation
from registry.problems import UnknownTool

if TYPE_CHECKING:
    from django.http import HttpResponse

MAX_SUGGESTIONS = 500  # of tools; any other may be typed


class ExplainForm(forms.Form):
    agent = forms.ChoiceField(label=gettext_lazy("Agent"))
    tool = forms.CharField(label=gettext_lazy("Tool"), max_length=128)
    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=gettext_lazy("A JSON object. Without arguments, steps that depend on them are not decided."),
    )

    def __init__(self, *args: Any, agents: list[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice = self.fields["agent"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(agent.wire_id, agent.name) for agent in agents]

    def clean_arguments(self) -> dict[str, Any] | None:
        text = self.cleaned_data["arguments"]
        if not text.strip():
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise forms.ValidationError(
                gettext("This is not valid JSON: %(why)s"), params={"why": str(error)}
            ) from error
        if not isinstance(value, dict):
            raise forms.ValidationError(gettext("Arguments must be a JSON object."))
        return value


@require_GET
@needs("invocations.view")
def explain_decision(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ExplainForm), tools (names), preflight, steps, changes, conditions, agent, waiting (the GrantRequest for
    this tool and agent, if one waits), may_request, may_see; the decision's only when agent and tool were asked for.
    """
    by = request.principal
    agents = list(Agent.objects.filter(tenant_id=by.tenant_id).order_by("name"))
    asked = "agent" in request.GET or "tool" in request.GET
    form = ExplainForm(request.GET if asked else None, agents=agents)
    context: dict[str, Any] = {
        "section": "explain",
        "form": form,
        "tools": Installation.objects.visible_to(by).order_by("name").values_list("name", flat=True)[:MAX_SUGGESTIONS],
        "may_request": by.may("grants.request"),
        "may_see": by.may("grants.view"),
    }
    if asked and form.is_valid():
        chosen = next(agent for agent in agents if agent.wire_id == form.cleaned_data["agent"])
        try:
            preflight, log = explain_call(
                tool=form.cleaned_data["tool"], agent=chosen, arguments=form.cleaned_data["arguments"], by=by
            )
        except UnknownTool as problem:
            form.add_error("tool", translate_sentence(problem.detail))
        else:
            context |= {
                "agent": chosen,
                "preflight": preflight,
                "steps": describe_steps(preflight, log),
                "changes": suggest_changes(preflight),
                "conditions": list_conditions(preflight),
                "waiting": GrantRequest.objects.visible_to(by)
                .filter(agent=chosen, tools=preflight.decision_context.tool, state=RequestState.WAITING)
                .first(),
            }
    status = 422 if form.is_bound and form.errors else 200
    return render_page(request, "explanations/explain.html", context, partial="explanation", status=status)


@require_POST
@needs("grants.request")
def explain_request(request: ConsoleRequest) -> HttpResponse:
    """POST agent, tool: ask for the smallest grant that would let the call through. Worked out here, not taken from the form."""
    by = request.principal
    try:
        agent = Agent.objects.get(pk=decode("agt", request.POST.get("agent", "")), tenant_id=by.tenant_id)
    except ValueError as error:
        raise NotFound(gettext("There is no such agent.")) from error
    preflight, _ = explain_call(tool=request.POST.get("tool", ""), agent=agent, by=by)
    needed = next((change["change"] for change in suggest_changes(preflight) if change["kind"] == "grant"), None)
    if needed is None or "tools" not in needed:
        messages.info(request, gettext("No grant is missing for this call."))
    else:
        request_grant(
            agent_id=agent.pk,
            tools=needed["tools"],
            purpose=needed["reason"],
            capabilities=needed["capabilities"],
            scopes=needed["scopes"],
            conditions=needed["conditions"],
            by=by,
        )
        messages.success(request, gettext("The grant was requested. People who give grants see it now."))
    return redirect(f"/explain?agent={agent.wire_id}&tool={preflight.decision_context.tool}")
