"""Cross-origin answers: pages of anybody may ask what is here, since no cookie decides what they are told."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
    "Access-Control-Max-Age": "600",
}


def open_to_pages(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """For an endpoint of the protocol; never for one where a person decides."""

    @wraps(view)
    def answered(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        asks_first = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        response = HttpResponse(status=204, headers=ALLOWED) if asks_first else view(request, *args, **kwargs)
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    return answered
