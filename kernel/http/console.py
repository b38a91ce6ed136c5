"""Console views: what all of them share.

``@needs("consents.decide")`` names the permission of a view (a guard test refuses a view without one) and sends people who
are not signed in to the sign-in page. ``render_page`` renders the whole page, or only the partial that HTMX asks for.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_htmx.middleware import HtmxDetails

    from kernel.principal import Principal

P = ParamSpec("P")


class ConsoleRequest(HttpRequest):
    """What views get: a request of a signed-in person within one tenant."""

    principal: Principal
    tenant: Any  # access.Tenant, which the kernel does not know
    tenants: list[Any]
    htmx: HtmxDetails
    display: Any  # access.DisplaySettings of the person; None: they have chosen nothing
    request_id: str


def needs(
    permission: str, *, held: Callable[..., bool] | None = None
) -> Callable[
    [Callable[Concatenate[ConsoleRequest, P], HttpResponse]], Callable[Concatenate[HttpRequest, P], HttpResponse]
]:
    """The permission of a view. It is checked before the view runs, and read by the guard test.

    ``held(principal, permission, **kwargs)`` is asked about who does not hold it in the whole tenant: whether they hold it on
    what the address names.
    """

    def decorate(
        view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            principal: Principal | None = getattr(request, "principal", None)
            if principal is None:
                to_login = redirect_to_login(request.get_full_path())
                if getattr(request, "htmx", False):
                    return HttpResponseClientRedirect(to_login.url)
                return to_login
            if held is None or not (principal.may(permission) or held(principal, permission, **kwargs)):
                principal.check(permission)
            return view(request, *args, **kwargs)  # type: ignore[arg-type]

        checked.needs = permission  # type: ignore[attr-defined]
        checked.held = held  # type: ignore[attr-defined]
        return checked

    return decorate


def public(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """Marks a view that anybody may see. Every view is either this or ``needs`` something."""
    view.needs = None  # type: ignore[attr-defined]
    return view


def find_way_back(request: HttpRequest, to: str, *, default: str) -> str:
    """The address that a form came from, if it is one of this hub."""
    return (
        to if url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure()) else default
    )


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], *, partial: str = "", status: int = 200
) -> HttpResponse:
    """The page; or, when HTMX targets the element ``partial``, only that part of it."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    if partial and htmx and htmx.target == partial:
        template = f"{template}#{partial}"
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    response.headers["Cache-Control"] = "no-store"
    return response
