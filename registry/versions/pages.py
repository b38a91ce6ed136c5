"""Pages of versions: one version of a tool in the console, staged, yanked or trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_POST

from access.object_permissions.rules import allowed_on
from evidence.search.related_facts import facts_naming
from kernel.components.forms import add_problem
from kernel.components.sentences import translate_sentence
from kernel.database.tenancy import hub_wide
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_excerpt
from kernel.problems import Problem
from registry.forms import EnableForm, StageForm, StateForm, YankForm
from registry.installations.resolution import is_usable
from registry.models import Installation, InstallationState, ToolState, ToolVersion
from registry.object_permissions import on_version
from registry.tools.lifecycle import check_can_trust
from registry.versions import services
from registry.versions.bump import lock_changes
from registry.versions.presentation import shown_changes, shown_dependencies, shown_time_limit

if TYPE_CHECKING:
    from uuid import UUID

    from django.forms import Form
    from django.http import HttpResponse

    from kernel.http.pagination import Excerpt

MOST_INSTALLED = 100


def _version(request: ConsoleRequest, version_id: UUID) -> ToolVersion:
    rows = ToolVersion.objects.select_related("tool__current", "base")
    return rows.get(pk=version_id, tool__tenant_id=request.principal.tenant_id)


@hub_wide()
def installed_in(version: ToolVersion) -> Excerpt[Installation]:
    """Who gets it now. A publisher sees the names of tenants that have installed what it shares."""
    rows = Installation.objects.filter(version=version).exclude(state=InstallationState.REMOVED)
    return fetch_excerpt(rows.select_related("tenant").order_by("tenant__slug"), MOST_INSTALLED)


def _why_not_trusted(version: ToolVersion) -> str:
    try:
        check_can_trust(version)
    except Problem as problem:
        return translate_sentence(problem.detail)
    return ""


def _page(request: ConsoleRequest, version: ToolVersion, extra: dict[str, Any], *, status: int = 200) -> HttpResponse:
    by = request.principal
    usable = is_usable(version)
    allowed = allowed_on(by, version.tool)
    may_operate = "tools.operate" in allowed
    context = {
        "section": "tools",
        "tool": version.tool,
        "version": version,
        "manifest": version.view,
        "time_limit": shown_time_limit(version, tenant_id=by.tenant_id),
        "changes": shown_changes([*version.changes, *lock_changes(version.base, version)]),
        "dependencies": shown_dependencies(version),
        "is_current": version.tool.current_id == version.pk,
        "usable": usable,
        "installed": installed_in(version),
        "facts": facts_naming(by, version.wire_id, size=30)[::-1],
        "may_review": "tools.review" in allowed,
        "may_operate": may_operate,
        "may_enable": may_operate and usable and version.tool.current_id != version.pk,
        "may_stage": may_operate and usable and version.tool.state == ToolState.ENABLED,
        "may_yank": may_operate and version.yanked_at is None,
        "may_trust": "tools.trust" in allowed,
        "may_halt": by.may("halts.throw"),
        "why_not_trusted": _why_not_trusted(version),
        "enable_form": EnableForm(),
        "stage_form": StageForm(),
        "yank_form": YankForm(version=version.version),
        "trust_form": StateForm(),
    }
    return render_page(request, "versions/version_detail.html", context | extra, status=status)


@require_GET
@needs("tools.view")
def version(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """Context: version, tool, manifest, changes and dependencies (from registry.versions.presentation), is_current, usable, installed
    (Excerpt of the Installations that get it), facts, may_operate, may_enable, may_stage, may_yank, may_trust, may_halt, may_review,
    why_not_trusted (sentence or ""), and a form for each change.
    """
    return _page(request, _version(request, version_id), {})


def _change(request: ConsoleRequest, version: ToolVersion, form: Form, key: str, do: Any) -> HttpResponse:
    """Run one change and say what it did; a form that is not right comes back with what was typed."""
    if form.is_valid():
        try:
            told: str = do(form.cleaned_data)
        except Problem as problem:
            if not problem.details.get("findings"):
                raise
            add_problem(form, problem)
        else:
            messages.success(request, told)
            return redirect("version", version.pk)
    return _page(request, version, {key: form}, status=422)


@require_POST
@needs("tools.operate", held=on_version)
def version_stage(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """POST tenants (short names) and reason."""

    def do(data: dict[str, Any]) -> str:
        moved = services.stage_version(
            version_id=version_id, tenants=data["tenants"], reason=data["reason"], by=request.principal
        )
        n = len(moved)
        return ngettext("%(n)d installation gets it now.", "%(n)d installations get it now.", n) % {"n": n}

    return _change(request, _version(request, version_id), StageForm(request.POST), "stage_form", do)


@require_POST
@needs("tools.operate", held=on_version)
def version_yank(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """POST reason and confirm (the version, typed)."""
    found = _version(request, version_id)

    def do(data: dict[str, Any]) -> str:
        moved, stuck = services.yank_version(version_id=version_id, reason=data["reason"], by=request.principal)
        return gettext("Yanked. %(moved)d installations got another version; %(stuck)d have none and are refused.") % {
            "moved": len(moved),
            "stuck": len(stuck),
        }

    return _change(request, found, YankForm(request.POST, version=found.version), "yank_form", do)


@require_POST
@needs("tools.trust", held=on_version)
def version_trust(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """POST reason; with `stop`, take the mark back."""

    def do(data: dict[str, Any]) -> str:
        if request.POST.get("stop"):
            services.distrust_version(version_id=version_id, reason=data["reason"], by=request.principal)
            return gettext("The version is no longer trusted.")
        services.trust_version(version_id=version_id, reason=data["reason"], by=request.principal)
        return gettext("The version is now trusted.")

    return _change(request, _version(request, version_id), StateForm(request.POST), "trust_form", do)


@require_POST
@needs("tools.operate", held=on_version)
def version_dependencies_retry(request: ConsoleRequest, version_id: UUID) -> HttpResponse:
    """Try again to resolve or build them."""
    services.retry_dependencies(version_id=version_id, by=request.principal)
    messages.success(request, gettext("The dependencies are being retried."))
    return redirect("version", version_id)
