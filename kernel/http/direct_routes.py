"""Direct routes: addresses that only programs ask, with a key, and whose views are asked past the request middleware of browsers.

What such a view is promised stands in ``DIRECT_MIDDLEWARE``, and which addresses have one in ``DIRECT_URLCONF``: sessions, forms'
tokens, messages and pages' libraries are for people. Everybody else takes the way of ``MIDDLEWARE``, also at the same address with
another method. Both answer alike, byte for byte (tests/integration/api/test_direct_routes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csp.middleware import CSPMiddleware
from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, get_resolver
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.module_loading import import_string

from kernel.http.exception_handlers import API_PREFIX, SERVED_PREFIXES, build_problem_response, translate_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django.http.response import HttpResponseBase
    from django.urls import ResolverMatch

    GetResponse = Callable[[HttpRequest], HttpResponseBase]

METHOD = "POST"


def find_direct_route(request: HttpRequest) -> ResolverMatch | None:
    if request.method != METHOD or not request.path_info.startswith((API_PREFIX, *SERVED_PREFIXES)):
        return None
    try:
        return get_resolver(settings.DIRECT_URLCONF).resolve(request.path_info)
    except Resolver404:
        return None


def ask_view(request: HttpRequest) -> HttpResponseBase:
    """The innermost part of the way, as Django and ``kernel.http.middleware.Problems`` have it."""
    match = request.resolver_match = request.direct_match  # type: ignore[attr-defined]
    try:
        response = match.func(request, *match.args, **match.kwargs)
        return response.render() if hasattr(response, "render") else response  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001  mapped and logged like what any view raises
        return build_problem_response(request, translate_exception(error, request))


def write_content_policy(get_response: GetResponse) -> GetResponse:
    """Request middleware: the content policy as its own middleware writes it, which would put the same text together each time."""
    written: Any = CSPMiddleware(lambda _: HttpResponse())(HttpRequest())
    policy = {name: text for name, text in written.items() if name.startswith("Content-Security-Policy")}

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        for name, text in policy.items():
            response.headers.setdefault(name, text)
        return response

    return middleware


def choose_language(get_response: GetResponse) -> GetResponse:
    """Request middleware: as Django's, which also looks for languages in addresses. Ours have none."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        translation.activate(translation.get_language_from_request(request))
        language = request.LANGUAGE_CODE = translation.get_language()
        response = get_response(request)
        patch_vary_headers(response, ("Accept-Language",))
        response.headers.setdefault("Content-Language", language)
        return response

    return middleware


def build_direct_chain() -> GetResponse:
    """Without telemetry's part."""
    return _build_chain(settings.DIRECT_MIDDLEWARE, ask_view)


def add_telemetry(respond: GetResponse) -> GetResponse:
    """With what telemetry has put among the request middleware of this process, where traces go somewhere."""
    return _build_chain([name for name in settings.MIDDLEWARE if name.startswith("opentelemetry.")], respond)


def _build_chain(names: Iterable[str], respond: Any) -> GetResponse:
    respond = convert_exception_to_response(respond)
    for name in reversed(list(names)):
        respond = convert_exception_to_response(import_string(name)(respond))
    return respond  # type: ignore[no-any-return]


def prefer_direct_routes(whole: GetResponse) -> GetResponse:
    """The short way for requests to direct routes, and for all others the ``whole`` one, Django's."""
    direct = add_telemetry(build_direct_chain())

    def respond(request: HttpRequest) -> HttpResponseBase:
        request.direct_match = find_direct_route(request)  # type: ignore[attr-defined]
        answer = direct if request.direct_match else whole  # type: ignore[attr-defined]
        return answer(request)

    return respond
