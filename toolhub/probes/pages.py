"""Probes: whether this web process is alive, and can do its work.

Others answer the same at TOOLHUB_PROBE_BIND: :mod:`toolhub.probes.server`.
"""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from kernel.http.console import public
from toolhub.probes.readiness import check_readiness, is_good


@public
def alive(request: HttpRequest) -> JsonResponse:
    """Answers as long as the process does; asks nobody."""
    del request
    return JsonResponse({"ok": True})


@public
def ready(request: HttpRequest) -> JsonResponse:
    """200 when calls can be accepted; 503 with the part that cannot."""
    del request
    found = check_readiness()
    good = is_good(found)
    response = JsonResponse({"ok": good, "checks": found}, status=200 if good else 503)
    if not good:
        response.headers["Retry-After"] = "5"
    return response
