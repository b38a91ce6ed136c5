"""Direct addresses: those at which calls are made or asked about, with a key (:mod:`kernel.http.direct_routes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import include, path

from toolhub.addresses import collect_endpoints, collect_pages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.urls import URLPattern


def select_call_routes(patterns: Iterable[URLPattern]) -> list[URLPattern]:
    """Of the views that take calls (:mod:`invocations.accept.api`)."""
    return [each for each in patterns if getattr(getattr(each.callback, "cls", None), "takes_calls", False)]


urlpatterns = [
    path("api/v1/", include(select_call_routes(collect_endpoints()))),
    *select_call_routes(collect_pages()),
]
