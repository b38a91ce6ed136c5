"""Pages of tools: how people browse and switch tools in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.models import Grant
from access.object_permissions.rules import allowed_on, object_permission_holders
from evidence.search.related_facts import facts_about
from invocations.call_links import link_calls, link_slower_calls
from invocations.service_levels.call_uses import load_tool_uses
from invocations.service_levels.tool_report import load_tool_report
from kernel.components.forms import add_problem
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.ids import decode
from kernel.problems import NotFound, Problem
from registry.discovery import selectors as discovery_selectors
from registry.forms import DeprecateForm, EnableForm, StateForm
from registry.imports.next_versions import can_have_next_version
from registry.installations.resolution import is_usable, usable_versions
from registry.models import TRANSITIONS, Installation, InstallationState, Tool, ToolKind, ToolState
from registry.object_permissions import on_tool
from registry.tools import selectors
from registry.tools.expression_matches import list_arguments, load_subjects, match_tools
from registry.versions import services
from registry.versions.presentation import shown_time_limit
from unitools.expressions import DOMAINS, EFFECTS, SAFETY_CLASSES, build_subject, parse_cached

if TYPE_CHECKING:
    from django.forms import Form
    from django.http import HttpResponse

    from kernel.principal import Principal


@require_GET
@needs("tools.view")
def tools(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Tool with .current), shown (list of {tool, use: its CallUse, None where it was not called}),
    sees_calls, filters, states, safety_classes, side_effects, capabilities, may_submit.
    """
    filters = {name: request.GET.get(name, "") for name in discovery_selectors.FILTERS}
    rows = selectors.find_tools(by=request.principal, **filters)
    page = fetch_page(rows, prefix="tol", after=request.GET.get("after", ""))
    uses = load_tool_uses([row.name for row in page.rows], by=request.principal)
    context = {
        "section": "tools",
        "page": page,
        "shown": [{"tool": row, "use": uses.get(row.name)} for row in page.rows],
        "sees_calls": request.principal.may("invocations.view"),
        "filters": filters,
        "states": ToolState.values,
        "safety_classes": SAFETY_CLASSES,
        "side_effects": EFFECTS,
        "capabilities": DOMAINS,
        "may_submit": request.principal.may("tools.submit"),
    }
    return render_page(request, "tools/tool_list.html", context, partial="rows")


@require_GET
@needs("tools.view")
def tool_matches(request: ConsoleRequest) -> HttpResponse:
    """``?tools=``: an expression. Context: matches (ExpressionMatches; None without one), arguments (of the tools that are named)."""
    text = request.GET.get("tools", "")
    matches = match_tools(text, load_subjects(request.principal)) if text else None
    context = {
        "section": "tools",
        "matches": matches,
        "arguments": list_arguments(matches.names, by=request.principal) if matches else [],
    }
    return render_page(request, "tools/tool_matches.html", context, partial="tool-matches")


def _tool_page(
    request: ConsoleRequest, name: str, tab: str, extra: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """The frame of all tabs. Context: tool, tab, manifest (of the current or newest version, or None), version, allowed (states),
    may_operate, may_try, may_halt,
    latest_approved (ToolVersion to enable, or None), yanked (the current version was), installation (the
    tenant's own, or None), may_make_next, enable_form, pause_form, deprecate_form, share_form, and the tab's own.
    """
    found = selectors.get_tool(name, tenant_id=request.principal.tenant_id)
    newest = found.versions.order_by("-pk").first()
    version = found.current or newest
    approved = next(iter(usable_versions(found)), None)
    mine = Installation.objects.visible_to(request.principal).filter(tool=found)
    installation = mine.exclude(state=InstallationState.REMOVED).first()
    is_tool = found.kind == ToolKind.TOOL  # a model is operated under its provider
    context = {
        "section": "tools",
        "tool": found,
        "tab": tab,
        "version": version,
        "manifest": version.view if version else None,
        "time_limit": shown_time_limit(version, tenant_id=request.principal.tenant_id),
        "allowed": sorted(TRANSITIONS[found.state]),
        "may_operate": is_tool and "tools.operate" in allowed_on(request.principal, found),
        "may_try": is_tool and version is not None and request.principal.may("playground.use"),
        "may_halt": request.principal.may("halts.throw"),
        "latest_approved": approved if approved and approved != found.current else None,
        "yanked": found.current is not None and not is_usable(found.current),
        "installation": installation,
        "may_make_next": request.principal.may("tools.submit") and can_have_next_version(version, installation),
        "enable_form": EnableForm(),
        "pause_form": StateForm(),
        "deprecate_form": DeprecateForm(tool=name),
        "share_form": StateForm(),
    }
    return render_page(request, "tools/tool_detail.html", context | extra, partial="tab", status=status)


def describe_tool_figures(name: str, *, by: Principal) -> dict[str, Any]:
    """Context: report (ToolReport; None: one may not see calls), calls_url (of the list of them), p50_url and p95_url (of those that
    took longer).
    """
    if not by.may("invocations.view"):
        return {"report": None}
    report = load_tool_report(tenant_id=by.tenant_id, tool=name)
    since, latency = report.since, report.latency
    return {
        "report": report,
        "calls_url": link_calls(since, tool=name),
        "p50_url": link_slower_calls(since, latency.p50_ms, tool=name),
        "p95_url": link_slower_calls(since, latency.p95_ms, tool=name),
    }


@require_GET
@needs("tools.view")
def tool(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab overview. Context beside the frame's: that of :func:`describe_tool_figures`, grants (list of active Grant that cover the
    tool, when the person may see them), exceptions (list of {user, name, label}: who holds what on this tool alone, when the person
    may see people).
    """
    return _overview_tab(request, name, {})


def _overview_tab(request: ConsoleRequest, name: str, extra: dict[str, Any], *, status: int = 200) -> HttpResponse:
    grants, tool = [], selectors.get_tool(name, tenant_id=request.principal.tenant_id)
    if request.principal.may("grants.view"):
        found = (
            Grant.objects.visible_to(request.principal).filter(revoked_at=None).select_related("agent").order_by("-pk")
        )
        subject = build_subject(tool.current.view) if tool.current else None
        grants = [grant for grant in found if subject is not None and parse_cached(grant.tools).matches(subject)]
    own = describe_tool_figures(name, by=request.principal)
    own |= {"grants": grants, "exceptions": object_permission_holders(tool, by=request.principal)}
    return _tool_page(request, name, "overview", own | extra, status=status)


@require_GET
@needs("tools.view")
def tool_versions(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab versions. Context: page (Page of ToolVersion, newest first, with .reviews.all)."""
    found = selectors.get_tool(name, tenant_id=request.principal.tenant_id)
    rows = found.versions.prefetch_related("reviews")
    page = fetch_page(rows, prefix="tvn", after=request.GET.get("after", ""))
    return _tool_page(request, name, "versions", {"page": page})


@require_GET
@needs("tools.view")
def tool_manifest(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab manifest: the document as a tree."""
    return _tool_page(request, name, "manifest", {})


@require_GET
@needs("tools.view")
def tool_activity(request: ConsoleRequest, name: str) -> HttpResponse:
    """Tab activity. Context: facts (the newest 50 Facts about the tool itself)."""
    facts = facts_about(request.principal, f"soul:tool:{name}")[::-1]
    return _tool_page(request, name, "activity", {"facts": facts})


def _change(request: ConsoleRequest, name: str, form: Form, key: str, do: Any) -> HttpResponse:
    """Run one state change; a form that is not right comes back with what was typed."""
    if form.is_valid():
        try:
            done: Tool = do(form.cleaned_data)
        except Problem as problem:
            if not problem.details.get("findings"):
                raise
            add_problem(form, problem)
        else:
            messages.success(
                request,
                gettext("%(tool)s is now %(state)s. This applies from the next call.")
                % {"tool": done.name, "state": done.get_state_display().lower()},
            )
            return redirect("tool", done.name)
    return _overview_tab(request, name, {key: form}, status=422)


@require_POST
@needs("tools.operate", held=on_tool)
def tool_enable(request: ConsoleRequest, name: str) -> HttpResponse:
    """POST reason and, for a version other than the current one, version (tvn_…)."""

    def do(data: dict[str, Any]) -> Tool:
        try:
            version_id = decode("tvn", data["version"]) if data["version"] else None
        except ValueError as error:
            raise NotFound(gettext("There is no such version.")) from error
        return services.enable_tool(name=name, reason=data["reason"], version_id=version_id, by=request.principal)

    return _change(request, name, EnableForm(request.POST), "enable_form", do)


@require_POST
@needs("tools.operate", held=on_tool)
def tool_pause(request: ConsoleRequest, name: str) -> HttpResponse:
    return _change(
        request,
        name,
        StateForm(request.POST),
        "pause_form",
        lambda data: services.pause_tool(name=name, reason=data["reason"], by=request.principal),
    )


@require_POST
@needs("tools.operate", held=on_tool)
def tool_deprecate(request: ConsoleRequest, name: str) -> HttpResponse:
    return _change(
        request,
        name,
        DeprecateForm(request.POST, tool=name),
        "deprecate_form",
        lambda data: services.deprecate_tool(
            name=name,
            reason=data["reason"],
            sunset_on=data["sunset_on"],
            successor=data["successor"].strip(),
            by=request.principal,
        ),
    )


@require_POST
@needs("tools.operate", held=on_tool)
def tool_share(request: ConsoleRequest, name: str) -> HttpResponse:
    """Let other tenants install the tool; with `stop`, let no other tenant install it any more."""
    form = StateForm(request.POST)
    if not form.is_valid():
        return _overview_tab(request, name, {"share_form": form}, status=422)
    change = services.unshare_tool if request.POST.get("stop") else services.share_tool
    done = change(name=name, reason=form.cleaned_data["reason"], by=request.principal)
    told = (
        gettext("Other tenants can install it now.") if done.shared else gettext("No other tenant can install it now.")
    )
    messages.success(request, told)
    return redirect("tool", done.name)
