"""Console: what surrounds every page, and what is on the first one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_GET, require_POST
from drf_spectacular.generators import SchemaGenerator

from access.models import Consent, ConsentState, GrantRequest, Membership, RequestState
from access.roles import Role
from kernel.http.console import ConsoleRequest, find_way_back, public, render_page
from registry.halt_notices import read_halt_notices
from registry.models import ToolVersion, VersionState
from toolhub.addresses import collect_navigation

if TYPE_CHECKING:
    from collections.abc import Sized

    from django.http import HttpRequest


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
    stops = SimpleLazyObject(partial(read_halt_notices, request))
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
                "count": counts.get(entry.key),  # None: nothing is counted
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
