"""Pages of trials: the form of a version's arguments in its review, and what it answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.problems import Halted
from invocations.replays.services import cancel_replay
from invocations.trials.answers import TrialAnswer, read_trial
from invocations.trials.services import check_can_try, list_own_trials, request_trial
from invocations.tries.argument_form import (
    FIELDS,
    JSON,
    ArgumentForm,
    fill_arguments,
    propose_arguments,
    redraw_arguments,
    take_arguments,
)
from kernel.components.schema_form.fields import ABSENT
from kernel.components.sentences import translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import Conflict, Problem, SchemaInvalid
from registry.models import ToolVersion
from registry.object_permissions import on_version

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

ARGUMENTS = "arguments"  # the part of the page that is drawn again
LAST = 10


def _find_version(request: ConsoleRequest, version_id: UUID) -> ToolVersion:
    return ToolVersion.objects.select_related("tool").get(pk=version_id, tool__tenant_id=request.principal.tenant_id)


def _render(
    request: ConsoleRequest,
    version: ToolVersion,
    arguments: ArgumentForm,
    *,
    answer: TrialAnswer | None = None,
    not_run: str = "",
    status: int = 200,
) -> HttpResponse:
    """``not_run``: why nothing was run, where it is for none of the arguments."""
    by = request.principal
    if status != 422:
        arguments.forget_errors()  # nobody has sent it yet
    try:
        check_can_try(version, by=by)
        why_not = ""
    except Problem as problem:
        why_not = translate_sentence(problem.detail)
    trials = list(list_own_trials(version, by=by).order_by("-pk")[:LAST])
    context: dict[str, Any] = {
        "section": "reviews",
        "version": version,
        "manifest": version.view,
        "arguments": arguments,
        "wrong": arguments.list_wrong(),
        "here": reverse("trial", args=[version.pk, answer.row.pk])
        if answer
        else reverse("trial_new", args=[version.pk]),
        "look_again": reverse("trial_new", args=[version.pk]),
        "not_run": not_run,
        "why_not": why_not,
        "answer": answer,
        "trials": trials,
        "works": not all(each.is_final for each in trials),
    }
    return render_page(request, "trials/trial.html", context, partial=ARGUMENTS, status=status)


@require_http_methods(["GET", "POST"])
@needs("tools.review", held=on_version)
def trial_new(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """Context: version, manifest, arguments (ArgumentForm), wrong (its fields with errors), here (the page's own address),
    look_again, not_run, why_not, trials (the last ones of this person), works (some of them have no end yet), answer (None).

    POST the arguments; ``do``: a button that has the form drawn again.
    """
    version = _find_version(request, version_id)
    schema = version.view.input_schema
    if request.method == "GET":
        return _render(request, version, propose_arguments(schema))
    if request.POST.get("view") not in (FIELDS, JSON):
        return _render(request, version, propose_arguments(schema), status=422)  # not what the form sends
    do = request.POST.get("do", "") or request.GET.get("do", "")  # a choice has no button that was pressed
    arguments = take_arguments(schema, request.POST.dict(), do=do)
    if do:
        drawn, status = redraw_arguments(arguments, schema, do=do)
        return _render(request, version, drawn, status=status)
    value = arguments.read()
    if value is ABSENT:
        return _render(request, version, arguments, status=422)
    try:
        row = request_trial(version_id=version.pk, arguments=value, by=request.principal)
    except SchemaInvalid as problem:
        arguments.place_findings(problem.details["findings"])
        return _render(request, version, arguments, status=422)
    except (Conflict, Halted) as problem:
        return _render(request, version, arguments, not_run=translate_sentence(problem.detail), status=422)
    return redirect("trial", version.pk, row.pk)


@require_GET
@needs("tools.review", held=on_version)
def trial(request: ConsoleRequest, version_id: UUID, replay_id: UUID) -> HttpResponse:
    """Context: that of :func:`trial_new`, with answer (TrialAnswer). Of whom it is not, the page is not there."""
    version = _find_version(request, version_id)
    rows = list_own_trials(version, by=request.principal).select_related("version")
    answer = read_trial(rows.get(pk=replay_id), by=request.principal)
    schema = version.view.input_schema
    filled = propose_arguments(schema) if answer.arguments is None else fill_arguments(schema, answer.arguments)
    return _render(request, version, filled, answer=answer)


@require_POST
@needs("tools.review", held=on_version)
def trial_cancel(request: ConsoleRequest, version_id: UUID, replay_id: UUID) -> HttpResponse:
    """End a trial of one's own that waits."""
    version = _find_version(request, version_id)
    row = list_own_trials(version, by=request.principal).get(pk=replay_id)
    cancel_replay(replay_id=row.pk, by=request.principal)
    return redirect("trial", version.pk, row.pk)
