"""Addresses of integrity."""

from django.urls import path

from evidence.integrity import api, pages

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
