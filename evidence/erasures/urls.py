"""Addresses of erasures."""

from django.urls import path
from django.utils.translation import gettext_lazy

from evidence.erasures import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="erasures",
        label=gettext_lazy("Erasures"),
        icon="ban",
        address="erasures",
        permission="evidence.erase",
        job=Job.EVIDENCE,
        order=50,
    ),
    NavigationEntry(
        key="retention",
        label=gettext_lazy("Retention"),
        icon="timer",
        address="retention",
        permission="evidence.retain",
        job=Job.EVIDENCE,
        order=60,
    ),
]

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

ACCESS = """
[console]

GET   erasures                 evidence.erase         HO----
GET   erasure_new              evidence.erase         HO----
POST  erasure_new              evidence.erase         HO----
POST  erasure_confirm          evidence.erase         HO----
GET   erasure                  evidence.erase         HO----
GET   retention                evidence.retain        HO----
POST  retention                evidence.retain        HO----

[api]

GET    api_erasures             evidence:erase
POST   api_erasures             evidence:erase
GET    api_erasure              evidence:erase
GET    api_retention            evidence:retain
PUT    api_retention            evidence:retain
"""
