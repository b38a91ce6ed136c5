"""Addresses of calls."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="invocations",
        label=gettext_lazy("Invocations"),
        icon="list-tree",
        address="invocations",
        permission="invocations.view",
        job=Job.INVOCATIONS,
        order=10,
    ),
]

PAGES = [
    path("invocations/<inv:invocation_id>", pages.invocation_detail, name="invocation"),
    path("invocations/<inv:invocation_id>/record", pages.invocation_record, name="invocation_record"),
    path("invocations/<inv:invocation_id>/cancel", pages.invocation_cancel, name="invocation_cancel"),
    path("invocations/<inv:invocation_id>/values", pages.invocation_values, name="invocation_values"),
]

API = [
    path("tools/<str:tool_id>/invoke", api.ToolInvokeView.as_view(), name="api_invoke"),
    path("invocations/<inv:invocation_id>", api.InvocationView.as_view(), name="api_invocation"),
    path(
        "evidence/invocations/<inv:invocation_id>",
        api.InvocationEvidenceView.as_view(),
        name="api_evidence",
    ),
]

ACCESS = """
[console]

GET   invocation               invocations.view       HOPRAD
GET   invocation_record        invocations.view       HOPRAD
POST  invocation_cancel        invocations.cancel     HOP---
POST  invocation_values        evidence.reveal        ----A-

[api]

POST   api_invoke               invocations:create
GET    api_invocation           invocations:read
DELETE api_invocation           invocations:create
GET    api_evidence             invocations:read
"""
