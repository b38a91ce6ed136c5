"""Request middleware of display: pages are written in the time zone and the numbers of who reads them.

What programs read is not: over REST, MCP and the served endpoints times are in UTC.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from django.utils import timezone

from access.display.services import find_display, use_display
from access.middleware import is_of_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase


def apply_display(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not is_of_console(request):
            with timezone.override(UTC):
                return get_response(request)
        chosen = find_display(request.user) if request.user.is_authenticated else None
        request.display = chosen  # type: ignore[attr-defined]
        with use_display(chosen):
            return get_response(request)

    return middleware
