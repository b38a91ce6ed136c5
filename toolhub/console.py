"""Console: what surrounds every page, and what is on the first one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_GET, require_POST
from drf_spectacular.generators import SchemaGenerator

from kernel.http.console import ConsoleRequest, find_way_back, public, render_page
from registry.halt_notices import read_halt_notices
from toolhub.shortcuts.letters import COOKIE, OFF, list_letters
from toolhub.sidebar import build_sidebar, list_roles

if TYPE_CHECKING:
    from django.http import HttpRequest


THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 60 * 60
MOST_REASONS = 8


def build_frame_context(request: ConsoleRequest) -> dict[str, Any]:
    """Context of the frame. What a person may not see is left out, not greyed out. What the database says is asked only where it is
    shown: a part of a page has no frame."""
    principal = getattr(request, "principal", None)
    theme = request.COOKIES.get("theme", "auto")
    context: dict[str, Any] = {
        "theme": theme if theme in THEMES else "auto",
        "environment": settings.TOOLHUB_ENVIRONMENT,
        "time_zone": timezone.get_current_timezone_name(),
        "proposes_zone": principal is not None and request.display is None,
        "nav": [],
        "roles": [],
        "letters": [],
        "single_keys": request.COOKIES.get(COOKIE) != OFF,
    }
    if principal is None:
        return context
    tenant = request.tenant
    stops = SimpleLazyObject(partial(read_halt_notices, request))
    return context | {
        "nav": SimpleLazyObject(partial(build_sidebar, request, stops)),
        "stops": stops,
        "letters": SimpleLazyObject(partial(list_letters, principal)),
        "tenants": [{"id": each.wire_id, "name": each.name, "current": each == tenant} for each in request.tenants],
        "roles": SimpleLazyObject(partial(_roles, request)),
    }


def _roles(request: ConsoleRequest) -> list[str]:
    return [str(role.label) for role in list_roles(request)]


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
    """The OpenAPI document for people. Context: info, operations (list of {method, path, id, paragraphs, parameters, responses})."""
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "id": operation.get("operationId", ""),
            "paragraphs": [" ".join(each.split()) for each in operation.get("description", "").split("\n\n")],
            "parameters": [each for each in operation.get("parameters", []) if each.get("in", "path") != "path"],
            "responses": sorted(operation.get("responses", {})),
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return render_page(
        request, "api_reference.html", {"section": "api", "info": document["info"], "operations": operations}
    )
