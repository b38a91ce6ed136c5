"""Addresses of exports."""

from django.urls import path

from evidence.exports import api, pages

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
