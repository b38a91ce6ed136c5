"""Addresses of explanations."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.explanations import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="explain",
        label=gettext_lazy("Explain a call"),
        icon="search",
        address="explain",
        permission="invocations.view",
        job=Job.INVOCATIONS,
        order=20,
    ),
]

PAGES = [
    path("explain", pages.explain_decision, name="explain"),
    path("explain/request", pages.explain_request, name="explain_request"),
]

API = [
    path("tools/<str:tool_id>/explain", api.ToolExplainView.as_view(), name="api_explain"),
    path("tools/<str:tool_id>/available", api.ToolAvailableView.as_view(), name="api_available"),
]

ACCESS = """
[console]

GET   explain                  invocations.view       HOPRAD
POST  explain_request          grants.request         HOP--D

[api]

POST   api_explain              invocations:create
GET    api_available            tools:read
"""
