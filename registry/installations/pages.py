"""Pages of installations: how people install tools for their tenant and set them up in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.object_permissions.rules import allowed_on
from evidence.search.related_facts import facts_about
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import NotFound, Problem
from registry.forms import StateForm
from registry.imports.next_versions import can_have_next_version
from registry.installations import services as installations
from registry.installations.api import list_missing_setup
from registry.installations.catalogue import not_gone, publisher_slugs, shared_tools
from registry.installations.forms import SetupForm
from registry.models import INSTALLATION_TRANSITIONS, Installation, InstallationState, ToolKind
from registry.object_permissions import on_installation
from registry.problems import NotInstalled
from registry.versions.presentation import shown_time_limit

if TYPE_CHECKING:
    from django.http import HttpResponse

CHANGES = {
    "pause": installations.pause_installation,
    "resume": installations.resume_installation,
    "remove": installations.remove_installation,
}


@require_GET
@needs("tools.view")
def installation_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Installation with .publisher and .lacking), may_install."""
    by = request.principal
    rows = Installation.objects.visible_to(by).of_kind(ToolKind.TOOL).exclude(state=InstallationState.REMOVED)
    page = fetch_page(rows.select_related("tool", "version"), prefix="ins", after=request.GET.get("after", ""))
    publishers = publisher_slugs(row.tool.tenant_id for row in page.rows)
    present = installations.present_secrets(by.tenant_id)
    shown = [
        {
            "installation": row,
            "publisher": publishers.get(row.tool.tenant_id, ""),
            "is_own": row.tool.tenant_id == by.tenant_id,
            "lacking": list_missing_setup(row, present),
        }
        for row in page.rows
    ]
    context = {"section": "installations", "page": page, "shown": shown, "may_install": by.may("tools.install")}
    return render_page(request, "installations/installation_list.html", context, partial="rows")


@require_GET
@needs("tools.view")
def shared_tool_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Tool), shown (list of {tool, publisher, is_installed}), filters ({q, publisher}), may_install."""
    by = request.principal
    filters = {name: request.GET.get(name, "") for name in ("q", "publisher")}
    page = fetch_page(shared_tools(by=by, **filters), prefix="tol", after=request.GET.get("after", ""))
    publishers = publisher_slugs(tool.tenant_id for tool in page.rows)
    shown = [{"tool": tool, "publisher": publishers.get(tool.tenant_id, "")} for tool in not_gone(page.rows)]
    context = {
        "section": "installations",
        "page": page,
        "shown": shown,
        "filters": filters,
        "may_install": by.may("tools.install"),
    }
    return render_page(request, "installations/shared_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("tools.install")
def installation_new(request: ConsoleRequest, publisher: str, name: str) -> HttpResponse:
    """Context: tool, publisher, version, manifest, form (StateForm)."""
    by = request.principal
    tool = shared_tools(by=by, publisher=publisher).filter(name=name).first()
    if tool is None or tool.current is None or not not_gone([tool]):
        raise NotFound(gettext("No publisher of this name shares such a tool."))
    form = StateForm(request.POST or None)
    if row := submit_form(
        form,
        lambda: installations.install_tool(name=name, publisher=publisher, reason=form.cleaned_data["reason"], by=by),
    ):
        messages.success(request, gettext("Installed. Complete its settings, then give agents a grant."))
        return redirect("installation", row.name)
    context = {
        "section": "installations",
        "tool": tool,
        "publisher": publisher,
        "version": tool.current,
        "manifest": tool.current.view,
        "time_limit": shown_time_limit(tool.current, tenant_id=request.principal.tenant_id),
        "form": form,
    }
    return render_page(request, "installations/install.html", context, status=422 if form.errors else 200)


def _installation(request: ConsoleRequest, name: str) -> Installation:
    rows = Installation.objects.visible_to(request.principal).exclude(state=InstallationState.REMOVED)
    row = rows.select_related("tool__current", "version").filter(name=name).first()
    if row is None:
        raise NotInstalled(f"{name[:128]} is not installed here.", remedy=gettext("Install it from the shared tools."))
    return row


def _page(
    request: ConsoleRequest, row: Installation, form: SetupForm | None, extra: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    by = request.principal
    present = installations.present_secrets(by.tenant_id)
    if form is None and row.version is not None:
        form = SetupForm(version=row.version, present=present, initial=SetupForm.initial_of(row))
    context = {
        "section": "installations",
        "installation": row,
        "tool": row.tool,
        "version": row.version,
        "manifest": row.version.view if row.version else None,
        "time_limit": shown_time_limit(row.version, tenant_id=by.tenant_id),
        "publisher": publisher_slugs([row.tool.tenant_id]).get(row.tool.tenant_id, ""),
        "is_own": row.tool.tenant_id == by.tenant_id,
        "lacking": list_missing_setup(row, present),
        "allowed": sorted(INSTALLATION_TRANSITIONS[row.state]),
        "may_install": "tools.install" in allowed_on(by, row.tool),
        "may_make_next": row.tool.tenant_id == by.tenant_id
        and by.may("tools.submit")
        and can_have_next_version(row.version, row),
        "may_secrets": by.may("secrets.manage"),
        "may_halt": by.may("halts.throw"),
        "may_try": row.tool.kind == ToolKind.TOOL and row.version is not None and by.may("playground.use"),
        "form": form,
        "change_form": StateForm(),
        "what": "",
        "facts": facts_about(by, row.wire_id, size=30)[::-1],
    }
    return render_page(request, "installations/installation_detail.html", context | extra, status=status)


@require_GET
@needs("tools.view")
def installation(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: installation, tool, version, manifest, publisher (slug), is_own, lacking (sentences), allowed (states),
    may_install, may_make_next, may_secrets, may_halt, may_try, form (SetupForm, None without a version), change_form, what (the
    change that was not right, or ""), facts.
    """
    return _page(request, _installation(request, name), None, {})


@require_POST
@needs("tools.install", held=on_installation)
def installation_configure(request: ConsoleRequest, name: str) -> HttpResponse:
    """POST what SetupForm shows."""
    row = _installation(request, name)
    if row.version is None:
        raise NotFound(gettext("There is no version to set up."))
    present = installations.present_secrets(request.principal.tenant_id)
    form = SetupForm(request.POST, version=row.version, present=present)
    if form.is_valid():
        try:
            installations.configure_installation(
                name=name, values=form.values(), reason=form.cleaned_data["reason"], by=request.principal
            )
        except Problem as problem:
            if not problem.details.get("findings"):
                raise
            form.add_findings(problem)
        else:
            messages.success(request, gettext("Saved. It applies from the next call."))
            return redirect("installation", name)
    return _page(request, row, form, {}, status=422)


@require_POST
@needs("tools.install", held=on_installation)
def installation_change(request: ConsoleRequest, name: str, what: str) -> HttpResponse:
    """POST reason. ``what``: pause, resume or remove."""
    row, form = _installation(request, name), StateForm(request.POST)
    change = CHANGES.get(what)
    if change is None:
        raise NotFound()
    if not form.is_valid():
        return _page(request, row, None, {"change_form": form, "what": what}, status=422)
    done = change(name=name, reason=form.cleaned_data["reason"], by=request.principal)
    if done.state == InstallationState.REMOVED:
        messages.success(request, gettext("%(tool)s was removed from this tenant.") % {"tool": name})
        return redirect("installations")
    messages.success(request, gettext("The change applies from the next call."))
    return redirect("installation", name)
