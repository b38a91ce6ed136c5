"""Console: what surrounds every page, and what is on the first one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Count, Q
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST
from drf_spectacular.generators import SchemaGenerator

from access.budgets.selectors import nearly_used_up
from access.models import Agent, Consent, ConsentState, Grant, GrantRequest, Membership, RequestState
from access.roles import Role
from evidence.integrity.alarms import Alarm, list_alarms, shared_alarms
from invocations.models import Invocation, State
from invocations.service_levels.call_health import WINDOW, count_reasons, measure_health
from invocations.service_levels.unmapped_errors import list_unmapped_since
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, find_way_back, needs, public, render_page
from kernel.problems import find_problem_class
from registry.halt_notices import HaltNotices
from registry.models import Tool, ToolKind, ToolState, ToolVersion, VersionState
from toolhub.addresses import collect_navigation

if TYPE_CHECKING:
    from collections.abc import Sized
    from datetime import datetime

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from kernel.principal import Principal

THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 60 * 60
MOST_REASONS = 8


def count_waiting(request: ConsoleRequest) -> dict[str, int]:
    """How many things wait for a person, by navigation key."""
    by = request.principal
    consents = Consent.objects.visible_to(by).in_state(ConsentState.REQUESTED).count()
    grants = GrantRequest.objects.visible_to(by).filter(state=RequestState.WAITING)
    return {
        "approvals": consents + (grants.count() if by.may("grants.view") else 0),
        "reviews": ToolVersion.objects.filter(
            tool__tenant_id=by.tenant_id, review_state=VersionState.SUBMITTED
        ).count(),
    }


def build_frame_context(request: ConsoleRequest) -> dict[str, Any]:
    """Context of the frame. What a person may not see is left out, not greyed out. What the database says is asked only where it is
    shown: a part of a page has no frame."""
    principal = getattr(request, "principal", None)
    theme = request.COOKIES.get("theme", "auto")
    context: dict[str, Any] = {
        "theme": theme if theme in THEMES else "auto",
        "environment": settings.TOOLHUB_ENVIRONMENT,
        "timezone_label": settings.TIME_ZONE,
        "nav": [],
        "roles": [],
    }
    if principal is None:
        return context
    tenant = request.tenant
    stops = SimpleLazyObject(partial(HaltNotices, principal))
    return context | {
        "nav": SimpleLazyObject(partial(_nav, request, stops)),
        "stops": stops,
        "tenants": [{"id": each.wire_id, "name": each.name, "current": each == tenant} for each in request.tenants],
        "roles": SimpleLazyObject(partial(_roles, request)),
    }


def _nav(request: ConsoleRequest, stops: Sized) -> list[dict[str, Any]]:
    """``stopped``: a count of what is stopped, not of what waits."""
    counts, nav = count_waiting(request) | {"halts": len(stops)}, list[dict[str, Any]]()
    for section, entries in collect_navigation():
        items = [
            {
                "key": entry.key,
                "label": entry.label,
                "icon": entry.icon,
                "url": reverse(entry.address),
                "count": counts.get(entry.key, 0),
                "stopped": entry.key == "halts",
            }
            for entry in entries
            if request.principal.may(entry.permission)
        ]
        if items:
            nav.append({"label": section.label, "items": items})
    return nav


def _roles(request: ConsoleRequest) -> list[str]:
    assert request.user.is_authenticated
    roles = Membership.objects.filter(tenant=request.tenant, user=request.user).values_list("role", flat=True)
    return [str(Role(role).label) for role in roles]


def build_checklist(request: ConsoleRequest) -> list[dict[str, Any]]:
    """The way to the first governed call, with what is done already."""
    by = request.principal
    done = {
        "tool": Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).exists(),
        "enabled": Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(state=ToolState.ENABLED).exists(),
        "grant": Grant.objects.visible_to(by).exists(),
        "call": Invocation.objects.visible_to(by).exists(),
    }
    return [
        {"done": done["tool"], "label": gettext("Submit a tool version"), "url": reverse("tool_submit")},
        {"done": done["enabled"], "label": gettext("Have it reviewed, then enable it"), "url": reverse("reviews")},
        {"done": done["grant"], "label": gettext("Give an agent a grant for it"), "url": reverse("grants")},
        {"done": done["call"], "label": gettext("Make the first call"), "url": reverse("api_reference")},
    ]


def list_refusal_reasons(calls: QuerySet[Invocation], now: datetime) -> list[dict[str, Any]]:
    """What callers got in place of a value."""
    found = count_reasons(calls, now, most=MOST_REASONS)
    return [{"problem": find_problem_class(reason), "times": times} for reason, times in found]


def _alarms_for(by: Principal) -> list[Alarm]:
    """Of the evidence: for those who may see the tenant's, and, of what all tenants share, for those who manage the hub."""
    if by.may("evidence.view"):
        return list_alarms(by.tenant_id)
    return shared_alarms() if by.may("hub.manage") else []


@require_GET
@needs("invocations.view")
def overview(request: ConsoleRequest) -> HttpResponse:
    """Context: needs (list of {label, url, count, icon}), figures ({calls, succeeded, denied, failed, agents, tools}), checklist
    (list of {done, label, url}, shown until all are done), onboarding (bool), latest (list of Invocation), open_calls (int:
    Begin without End), health (Health of the last 24 hours), reasons (list of {problem, times}: how calls ended, the
    most frequent first), unmapped (list of Found, of the whole hub), alarms (of the evidence, for who may see it), sees_evidence.
    """
    by = request.principal
    now = database_time()
    since = now - WINDOW
    mine = Invocation.objects.visible_to(by)
    figures = mine.filter(created_at__gte=since).aggregate(
        calls=Count("pk"),
        succeeded=Count("pk", filter=Q(state=State.SUCCEEDED)),
        denied=Count("pk", filter=Q(state=State.DENIED)),
        failed=Count("pk", filter=Q(state__in=[State.FAILED, State.TIMED_OUT, State.OUTCOME_UNKNOWN, State.CANCELLED])),
    )
    figures |= {
        "agents": Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).count(),
        "tools": Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(state=ToolState.ENABLED).count(),
    }
    counts = count_waiting(request) | {"budgets": nearly_used_up(by, now) if by.may("budgets.view") else 0}
    candidates = [
        ("approvals", "consents.view", gettext("Pending approvals"), reverse("approvals"), "user-check"),
        ("reviews", "tools.review", gettext("Versions to review"), reverse("reviews"), "git-compare"),
        ("budgets", "budgets.view", gettext("Budgets nearly used up"), reverse("budgets") + "?state=nearly", "timer"),
    ]
    todo = [
        {"label": label, "url": url, "count": counts[key], "icon": icon}
        for key, permission, label, url, icon in candidates
        if by.may(permission) and counts[key]
    ]
    steps = build_checklist(request)
    context = {
        "section": "overview",
        "needs": todo,
        "figures": figures,
        "checklist": steps,
        "onboarding": not all(step["done"] for step in steps),
        "latest": list(mine.select_related("agent", "version").order_by("-pk")[:8]),
        "open_calls": mine.filter(state__in=[State.QUEUED, State.RUNNING]).count(),
        "health": measure_health(mine, now),
        "reasons": list_refusal_reasons(mine, now),
        "unmapped": list_unmapped_since(since),
        "alarms": _alarms_for(by),
        "sees_evidence": by.may("evidence.view"),
    }
    return render_page(request, "overview.html", context, partial="overview-body")


def _back(request: HttpRequest) -> str:
    return find_way_back(request, request.POST.get("next", "/"), default="/")


@require_POST
@public
def set_theme(request: HttpRequest) -> HttpResponse:
    response = HttpResponseRedirect(_back(request))
    chosen = request.POST.get("theme", "auto")
    response.set_cookie("theme", chosen if chosen in THEMES else "auto", max_age=YEAR_S, samesite="Lax", httponly=True)
    return response


@require_POST
@public
def set_language(request: HttpRequest) -> HttpResponse:
    response = HttpResponseRedirect(_back(request))
    chosen = request.POST.get("language", "")
    if translation.check_for_language(chosen) and chosen in dict(settings.LANGUAGES):
        response.set_cookie(settings.LANGUAGE_COOKIE_NAME, chosen, max_age=YEAR_S, samesite="Lax", httponly=True)
    return response


@require_GET
@public
def api_reference(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document for people. Context: info, operations (list of {method, path, summary, description, parameters,
    scopes, id}).
    """
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "id": operation.get("operationId", ""),
            "description": operation.get("description", ""),
            "parameters": [each for each in operation.get("parameters", []) if each.get("in", "path") != "path"],
            "responses": sorted(operation.get("responses", {})),
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return render_page(
        request, "api_reference.html", {"section": "api", "info": document["info"], "operations": operations}
    )
