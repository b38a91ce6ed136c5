"""Addresses of consents."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.consents import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="approvals",
        label=gettext_lazy("Approvals"),
        icon="user-check",
        address="approvals",
        permission="consents.view",
        job=Job.APPROVALS,
        order=10,
    ),
    NavigationEntry(
        key="consents",
        label=gettext_lazy("Consents"),
        icon="handshake",
        address="consents",
        permission="consents.view",
        job=Job.APPROVALS,
        order=30,
    ),
]

PAGES = [
    path("approvals", pages.approvals, name="approvals"),
    path("consents", pages.consent_list, name="consents"),
    path("consents/revoke", pages.consents_revoke, name="consents_revoke"),
    path("consents/<cns:consent_id>", pages.consent, name="consent"),
    path("consents/<cns:consent_id>/decision", pages.consent_decide, name="consent_decide"),
    path("consents/<cns:consent_id>/try", pages.consent_try, name="consent_try"),
]

API = [
    path("consents", api.ConsentListView.as_view(), name="api_consents"),
    path("consents/<cns:consent_id>", api.ConsentView.as_view(), name="api_consent"),
]

ACCESS = """
[console]

GET   approvals                consents.view          HOPRA-
GET   consents                 consents.view          HOPRA-
GET   consents_revoke          consents.decide        HOP---
POST  consents_revoke          consents.decide        HOP---
GET   consent                  consents.view          HOPRA-
POST  consent_decide           consents.decide        HOP---
POST  consent_try              consents.decide        HOP---

[api]

GET    api_consents             consents:request
POST   api_consents             consents:request
GET    api_consent              consents:request
"""
