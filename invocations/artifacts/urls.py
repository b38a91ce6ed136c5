"""Addresses of artifacts."""

from django.urls import path

from invocations.artifacts import api, pages

PAGES = [
    path("artifacts/<art:artifact_id>", pages.artifact_download, name="artifact"),
    path("artifacts/<art:artifact_id>/remove", pages.artifact_remove, name="artifact_remove"),
]

API = [
    path("artifacts/<art:artifact_id>", api.ArtifactView.as_view(), name="api_artifact"),
]

ACCESS = """
[console]

GET   artifact                 evidence.reveal        ----A-
POST  artifact_remove          files.manage           HOP---

[api]

GET    api_artifact             invocations:read
DELETE api_artifact             invocations:create
"""
