"""Addresses of exports."""

from django.urls import path
from django.utils.translation import gettext_lazy

from evidence.exports import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="exports",
        label=gettext_lazy("Exports"),
        icon="download",
        address="exports",
        permission="evidence.view",
        job=Job.EVIDENCE,
        order=30,
    ),
]

PAGES = [
    path("evidence/exports", pages.exports, name="exports"),
    path("evidence/exports/new", pages.export_new, name="export_new"),
    path("evidence/exports/<exp:job_id>", pages.export, name="export"),
    path("evidence/exports/<exp:job_id>/content", pages.export_content, name="export_content"),
    path("evidence/exports/<exp:job_id>/cancel", pages.export_cancel, name="export_cancel"),
]

API = [
    path("evidence/exports", api.ExportListView.as_view(), name="api_exports"),
    path("evidence/exports/<exp:job_id>", api.ExportView.as_view(), name="api_export"),
    path("evidence/exports/<exp:job_id>/content", api.ExportContentView.as_view(), name="api_export_content"),
]

ACCESS = """
[console]

GET   exports                  evidence.view          HOP-A-
GET   export_new               evidence.view          HOP-A-
POST  export_new               evidence.view          HOP-A-
GET   export                   evidence.view          HOP-A-
GET   export_content           evidence.view          HOP-A-
POST  export_cancel            evidence.view          HOP-A-

[api]

GET    api_exports              evidence:export
POST   api_exports              evidence:export
GET    api_export               evidence:export
DELETE api_export               evidence:export
GET    api_export_content       evidence:export
"""
