"""Pages of tries: the form of a tool's arguments, and what came of a try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from access.connections.connection_rules import find_bounds
from access.sign_in.adapters import has_signed_in_within
from invocations.artifacts.api import build_download
from invocations.artifacts.models import Artifact
from invocations.artifacts.services import read_artifact
from invocations.call_story import list_next_steps
from invocations.calls import CallRefused
from invocations.pages import build_chart_steps
from invocations.playground.services import PERMISSION, find_playground, may_set_up
from invocations.tries.answers import READ_OWN, TryAnswer, read_answer
from invocations.tries.argument_form import (
    ArgumentForm,
    fill_arguments,
    propose_arguments,
    redraw_arguments,
    take_arguments,
)
from invocations.tries.callers import list_callers
from invocations.tries.forms import TryForm
from invocations.tries.services import TryDraft, list_last_tries, make_try, select_tries, takes_effect
from invocations.tries.snippets import build_snippets
from invocations.tries.tried_tools import TriedTool, describe_tried_tool, find_tried_tool
from kernel.components.forms import add_problem
from kernel.components.schema_form.fields import ABSENT
from kernel.components.waterfall import lay_out_steps
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import Problem, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

ARGUMENTS = "arguments"  # the part of the page that is drawn again


def _render(
    request: ConsoleRequest,
    tried: TriedTool,
    arguments: ArgumentForm,
    form: TryForm,
    *,
    answer: TryAnswer | None = None,
    refused: str = "",
    asks: bool = False,
    status: int = 200,
) -> HttpResponse:
    """``refused``: the id of a call that was refused for its arguments; ``asks``: whether to confirm that it takes effect."""
    by = request.principal
    value = arguments.read() if not (refused or arguments.errors or arguments.list_wrong()) else ABSENT
    if status != 422:
        arguments.forget_errors()  # nobody has sent it yet
    playground = find_playground(by.tenant_id)
    context: dict[str, Any] = {
        "section": "tools",
        "tried": tried,
        "manifest": tried.manifest,
        "arguments": arguments,
        "wrong": arguments.list_wrong(),
        "form": form,
        "answer": answer,
        "refused": refused,
        "asks": asks,
        "look_again": reverse("tool_try", args=[tried.name]),
        "snippets": build_snippets(
            tried.name,
            value if value is not ABSENT else {},
            is_dry=form.is_dry,
            hub=settings.TOOLHUB_PUBLIC_URL,
            token=uuid4(),
        )
        if value is not ABSENT
        else [],
        "tries": list_last_tries(tried.name, by=by),
        "has_callers": bool(form.fields["caller"].choices),  # type: ignore[attr-defined]
        "may_set_up": playground is None and may_set_up(by),
        "may_see_calls": by.may("invocations.view"),
        "may_review": by.may("tools.review"),
    }
    if answer is not None:
        invocation = answer.invocation
        context |= {
            "invocation": invocation,
            "chart": lay_out_steps(build_chart_steps(invocation)) if invocation.steps else None,
            "steps": list_next_steps(invocation, by=by) if invocation.reason else [],
        }
    return render_page(request, "tries/try.html", context, partial=ARGUMENTS, status=status)


@require_http_methods(["GET", "POST"])
@needs(PERMISSION)
def tool_try(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: tried (TriedTool), manifest, arguments (ArgumentForm), wrong (its fields with errors), form (TryForm), asks, refused,
    look_again, snippets, tries (the last ones of this person), has_callers, may_set_up, may_see_calls, may_review, answer (None).

    POST the arguments and TryForm; ``do``: a button that has the form drawn again. GET: ``version``.
    """
    by = request.principal
    said = request.POST if request.method == "POST" else request.GET
    tried = find_tried_tool(name, version=said.get("version", ""), by=by)
    schema, callers = tried.manifest.input_schema, list_callers(by)
    if request.method == "GET":
        return _render(request, tried, propose_arguments(schema), TryForm(callers=callers))
    do = request.POST.get("do", "") or request.GET.get("do", "")  # a choice has no button that was pressed
    arguments = take_arguments(schema, request.POST.dict(), do=do)
    if do:
        form = TryForm(initial=request.POST.dict(), callers=callers)
        drawn, status = redraw_arguments(arguments, schema, do=do)
        return _render(request, tried, drawn, form, status=status)
    return _send(request, tried, arguments, TryForm(request.POST, callers=callers))


def _send(request: ConsoleRequest, tried: TriedTool, arguments: ArgumentForm, form: TryForm) -> HttpResponse:
    value = arguments.read()
    if tried.why_not:
        form.add_error(None, tried.why_not)
    if not form.is_valid() or value is ABSENT:
        return _render(request, tried, arguments, form, status=422)
    said = form.cleaned_data
    draft = TryDraft(
        tool=tried.name,
        arguments=value,
        caller=said["caller"],
        is_dry=said["mode"] == "dry",
        purpose=said["purpose"],
        confirmed=said["confirmed"],
    )
    asks = takes_effect(tried.manifest, is_dry=draft.is_dry)
    if asks and not draft.confirmed:
        return _render(request, tried, arguments, form, asks=True)
    try:
        _check_lately_signed_in(request, draft, asks=asks)
        made = make_try(draft, tried.manifest, token=said["token"], by=request.principal)
    except CallRefused as refusal:
        findings = refusal.problem.details.get("findings", [])
        if not (isinstance(refusal.problem, SchemaInvalid) and findings):
            return redirect("tool_tried", tried.name, refusal.invocation.pk)
        arguments.place_findings(findings)
        return _render(request, tried, arguments, form, asks=asks, refused=refusal.invocation.wire_id, status=422)
    except Problem as problem:
        if problem.status >= 500:
            raise
        add_problem(form, problem)
        return _render(request, tried, arguments, form, asks=asks, status=422)
    return redirect("tool_tried", tried.name, made.pk)


def _check_lately_signed_in(request: ConsoleRequest, draft: TryDraft, *, asks: bool) -> None:
    """What the tenant says of whoever lets a program change things as an agent holds for the console as well."""
    lasts = find_bounds(request.principal.tenant_id).sign_in
    playground = find_playground(request.principal.tenant_id)
    is_playground = playground is not None and playground.agent.wire_id == draft.caller
    if asks and not is_playground and lasts is not None and not has_signed_in_within(request, lasts):
        raise SchemaInvalid.at(
            "/caller",
            gettext(
                "Your organisation asks whoever changes things as an agent to have signed in lately: sign in again."
            ),
        )


@require_GET
@needs(PERMISSION)
def tool_tried(request: ConsoleRequest, name: str, invocation_id: UUID) -> HttpResponse:
    """Context: that of :func:`tool_try`, with answer (TryAnswer), invocation, chart (Waterfall or None) and steps (NextStep)."""
    by = request.principal
    rows = select_tries(name, by=by).select_related("agent", "version__tool")
    invocation = rows.get(pk=invocation_id)
    version = invocation.version
    tried = describe_tried_tool(name, version, by=by) if version else find_tried_tool(name, version="", by=by)
    answer = read_answer(invocation, by=by)
    schema = tried.manifest.input_schema
    filled = propose_arguments(schema) if answer.arguments is None else fill_arguments(schema, answer.arguments)
    initial = {"caller": invocation.agent.wire_id, "mode": "dry" if invocation.dry_run else "real"}
    form = TryForm(initial=initial, callers=list_callers(by))
    return _render(request, tried, filled, form, answer=answer)


@require_GET
@needs(PERMISSION)
def tool_tried_artifact(request: ConsoleRequest, name: str, invocation_id: UUID, artifact_id: UUID) -> HttpResponse:
    """What a try has left, for the person who made it; that they read it is a fact."""
    by = request.principal
    tried = select_tries(name, by=by).get(pk=invocation_id)
    row = Artifact.objects.get(pk=artifact_id, invocation_id=tried.pk, tenant_id=by.tenant_id)
    row, content = read_artifact(artifact_id=row.pk, by=by, via="console", reason=READ_OWN)
    return build_download(row.name, row.media_type, content)
