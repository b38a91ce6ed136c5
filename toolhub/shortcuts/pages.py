"""Page of shortcuts: which there are, and the switch for those that are a single key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from kernel.http.console import ConsoleRequest, find_way_back, needs, render_page
from toolhub.shortcuts.letters import COOKIE, OFF

if TYPE_CHECKING:
    from django.http import HttpResponse

YEAR_S = 365 * 24 * 60 * 60


@require_http_methods(["GET", "POST"])
@needs("invocations.view")
def shortcuts(request: ConsoleRequest) -> HttpResponse:
    """POST keys (on, off), next. What the page shows is in the frame of all pages."""
    if request.method != "POST":
        return render_page(request, "shortcuts/shortcuts.html", {"section": "shortcuts"})
    response = HttpResponseRedirect(
        find_way_back(request, request.POST.get("next", "/shortcuts"), default="/shortcuts")
    )
    keys = OFF if request.POST.get("keys") == OFF else "on"
    response.set_cookie(COOKIE, keys, max_age=YEAR_S, samesite="Lax", httponly=True)
    return response
