"""Addresses of the hub: those that each noun declares beside its pages and endpoints, and those of the frame around them."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from toolhub import console, metrics, openapi, problem_catalogue, sdk
from toolhub.access_tables import check_access_tables
from toolhub.addresses import collect_endpoints, collect_pages

handler400 = "kernel.http.exception_handlers.bad_request"
handler403 = "kernel.http.exception_handlers.permission_denied"
handler404 = "kernel.http.exception_handlers.not_found"
handler429 = "kernel.http.exception_handlers.too_many"
handler500 = "kernel.http.exception_handlers.server_error"

NAVIGATION = [
    NavigationEntry(
        key="api",
        label=gettext_lazy("API reference"),
        icon="terminal",
        address="api_reference",
        permission="tools.view",
        job=Job.BUILD,
        order=60,
    ),
]

API = [
    path("errors", problem_catalogue.error_list, name="api_errors"),
    path("errors/<str:reason>", problem_catalogue.error_detail, name="api_error"),
    path("openapi.json", openapi.DocumentView.as_view(), name="api_openapi"),
]

PAGES = [
    path("theme", console.set_theme, name="theme"),
    path("language", console.set_language, name="set_language"),
    path("docs/api", console.api_reference, name="api_reference"),
    path("errors", problem_catalogue.problem_list, name="problems"),
    path("errors/<str:reason>", problem_catalogue.problem_detail, name="problem"),
    path("sdk/", sdk.sdk_index, name="sdk"),
    path("sdk/files/<str:name>", sdk.sdk_file, name="sdk_file"),
    path("sdk/<str:name>/", sdk.sdk_project, name="sdk_project"),
    path("metrics", metrics.metrics, name="metrics"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "api/v1/", include([*collect_endpoints(), *API])
    ),  # first, since it is asked most: Django tries one after the other
    *collect_pages(),
    *PAGES,
]

check_access_tables(urlpatterns)  # no process answers by addresses of which it was written otherwise who may
