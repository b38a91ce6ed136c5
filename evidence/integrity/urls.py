"""Addresses of integrity."""

from django.urls import path
from django.utils.translation import gettext_lazy

from evidence.integrity import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="integrity",
        label=gettext_lazy("Integrity"),
        icon="shield-check",
        address="integrity",
        permission="evidence.view",
        job=Job.EVIDENCE,
        order=20,
    ),
]

PAGES = [
    path("evidence/integrity", pages.integrity, name="integrity"),
    path("evidence/integrity/verify", pages.verification_new, name="verification_new"),
    path("evidence/integrity/<ver:verification_id>", pages.verification, name="verification"),
    path("evidence/checkpoints/<int:size>", pages.checkpoint_note, name="checkpoint_note"),
]

API = [
    path("evidence/integrity", api.IntegrityView.as_view(), name="api_integrity"),
    path("evidence/verifications", api.VerificationListView.as_view(), name="api_verifications"),
    path(
        "evidence/verifications/<ver:verification_id>",
        api.VerificationView.as_view(),
        name="api_verification",
    ),
]

ACCESS = """
[console]

GET   integrity                evidence.view          HOP-A-
POST  verification_new         evidence.view          HOP-A-
GET   verification             evidence.view          HOP-A-
GET   checkpoint_note          evidence.view          HOP-A-

[api]

GET    api_integrity            evidence:read
GET    api_verifications        evidence:read
POST   api_verifications        evidence:export
GET    api_verification         evidence:read
"""
