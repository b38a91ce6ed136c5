"""Request middleware: what happens around every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.http.exception_handlers import build_problem_response, translate_exception
from kernel.ids import choose_request_id
from kernel.names import HEADER_REQUEST_ID
from kernel.observability.log_context import read_log_field
from kernel.observability.telemetry import current_trace
from kernel.problems import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase


def assign_request_id(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Give the request an id (the caller's if it is harmless) and answer with it, so that a person can quote it; and with the
    W3C context of the trace that it is part of.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        known = read_log_field("request_id")  # of the web server's; there is none where a request comes by another way
        request.request_id = known or choose_request_id(request.headers.get(HEADER_REQUEST_ID, ""))  # type: ignore[attr-defined]
        response = get_response(request)
        response.headers[HEADER_REQUEST_ID] = request.request_id  # type: ignore[attr-defined]
        for name, value in current_trace().items():
            response.headers[name] = value
        return response

    return middleware


def refuse_nul(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse a NUL character: no name, filter or session holds one, and the database would, in the middle of a query."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return build_problem_response(request, Malformed("The address holds a NUL character."))
        if any("\x00" in value for value in request.COOKIES.values()):
            return build_problem_response(request, Malformed("A cookie holds a NUL character."))
        return get_response(request)

    return middleware


class Problems:
    """Turn what a console view raises into a page or a fragment. The API has the same in its exception handler."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase:
        return build_problem_response(request, translate_exception(exception, request))
