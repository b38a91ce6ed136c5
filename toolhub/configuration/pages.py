"""Pages of configuration: how people plan, apply and export one in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import Problem
from toolhub.configuration import services
from toolhub.configuration.document import read_document
from toolhub.configuration.file_format import read_text, write_text
from toolhub.configuration.forms import ConfigurationFileForm
from toolhub.configuration.plan import Action
from toolhub.configuration.problems import PlanStale
from toolhub.configuration.sentences import SECTION_WORDS

if TYPE_CHECKING:
    from toolhub.configuration.document import ConfigurationDocument
    from toolhub.configuration.plan import ConfigurationPlan

FORMS = {"yaml": "application/yaml", "json": "application/json"}
# action → (a word of the states that looks like it, label)
LOOKS = {Action.CREATE: "ok", Action.CHANGE: "different", Action.END: "bad"}


def _page(
    request: ConsoleRequest,
    form: ConfigurationFileForm,
    *,
    plan: ConfigurationPlan | None = None,
    problem: Problem | None = None,
    stale: bool = False,
    status: int = 200,
) -> HttpResponse:
    """Context: form, rows (of the plan: change, section, look, label), plan, problem, findings, stale."""
    labels = {
        Action.CREATE: gettext("Create"),
        Action.CHANGE: gettext("Change"),
        Action.END: gettext("End"),
    }
    rows = [
        {
            "change": change,
            "section": SECTION_WORDS[change.section],
            "look": LOOKS[change.action],
            "label": labels[change.action],
        }
        for change in (plan.doing if plan else [])
    ]
    context = {
        "section": "configuration",
        "form": form,
        "plan": plan,
        "rows": rows,
        "problem": problem,
        "findings": problem.details.get("findings", []) if problem else [],
        "stale": stale,
    }
    return render_page(request, "configuration/configuration.html", context, status=status)


@require_http_methods(["GET", "POST"])
@needs("configuration.apply")
def configuration(request: ConsoleRequest) -> HttpResponse:
    """POST file or text, prune, reason, do (plan or apply), digest (of the plan that was looked at)."""
    if request.method == "GET":
        return _page(request, ConfigurationFileForm())
    form = ConfigurationFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, form, status=422)
    data = form.cleaned_data
    try:
        document = read_document(read_text(data["text"]), prune_all=data["prune"])
        if request.POST.get("do") == "apply":
            return _apply(request, form, document)
        plan = services.plan_configuration(document, by=request.principal)
    except Problem as problem:
        return _page(request, form.again(), problem=problem, status=problem.status)
    return _page(request, form.again(digest=plan.digest), plan=plan)


def _apply(request: ConsoleRequest, form: ConfigurationFileForm, document: ConfigurationDocument) -> HttpResponse:
    data: dict[str, Any] = form.cleaned_data
    try:
        done = services.apply_configuration(
            document=document, plan_digest=data["digest"], reason=data["reason"], by=request.principal
        )
    except PlanStale as stale:
        plan = services.plan_configuration(document, by=request.principal)
        return _page(request, form.again(digest=plan.digest), plan=plan, stale=True, status=stale.status)
    count = len(done.plan.doing)
    said = ngettext("%(count)s change is applied.", "%(count)s changes are applied.", count) % {"count": count}
    messages.success(request, said if count else gettext("Nothing had to change."))
    for warning in services.list_applied_warnings(done, by=request.principal):
        messages.warning(request, warning)
    if done.shown_once:
        context = {"section": "configuration", "secrets": done.shown_once.items()}
        return render_page(request, "configuration/secrets.html", context)
    return redirect("configuration")


@require_GET
@needs("configuration.apply")
def configuration_export(request: ConsoleRequest) -> HttpResponse:
    """GET as: yaml (the default) or json. A file to keep."""
    form = "json" if request.GET.get("as") == "json" else "yaml"
    document = services.export_configuration(by=request.principal)
    response = HttpResponse(write_text(document, form), content_type=f"{FORMS[form]}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{document["tenant"]}.{form}"'
    response.headers["Cache-Control"] = "no-store"
    return response
