"""Metrics: what Prometheus gets from a web server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from kernel.http.console import public
from kernel.observability.exposition import answer_scrape

if TYPE_CHECKING:
    from django.http import HttpRequest

PLAIN = "text/plain; charset=utf-8"


@public
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """What this web process has counted, and what the database says of the whole hub. Without a token there is no such page."""
    if not settings.TOOLHUB_METRICS_TOKEN:
        return HttpResponse("TOOLHUB_METRICS_TOKEN is not set.\n", status=404, content_type=PLAIN)
    status, media_type, body = answer_scrape(
        accept=request.headers.get("Accept", ""), authorization=request.headers.get("Authorization", "")
    )
    response = HttpResponse(body, status=status, content_type=media_type)
    response.headers["Cache-Control"] = "no-store"
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
