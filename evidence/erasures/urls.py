"""Addresses of erasures."""

from django.urls import path

from evidence.erasures import api, pages

PAGES = [
    path("evidence/erasures", pages.erasures, name="erasures"),
    path("evidence/erasures/new", pages.erasure_new, name="erasure_new"),
    path("evidence/erasures/confirm", pages.erasure_confirm, name="erasure_confirm"),
    path("evidence/erasures/<era:erasure_id>", pages.erasure_page, name="erasure"),
    path("evidence/retention", pages.retention_page, name="retention"),
]

API = [
    path("evidence/erasures", api.ErasureListView.as_view(), name="api_erasures"),
    path("evidence/erasures/<era:erasure_id>", api.ErasureView.as_view(), name="api_erasure"),
    path("evidence/retention", api.RetentionView.as_view(), name="api_retention"),
]
