"""Addresses of impact."""

from django.urls import path

from access.policies.impact import pages

PAGES = [
    path("policies/<pol:policy_id>/impact", pages.policy_impact, name="policy_impact"),
    path("policies/<pol:policy_id>/preview", pages.policy_preview, name="policy_preview"),
    path("policies/<pol:policy_id>/publish", pages.policy_publish, name="policy_publish"),
]

ACCESS = """
[console]

GET   policy_impact            policies.view          HOPRA-
POST  policy_preview           policies.draft         HOP---
POST  policy_publish           policies.publish       HOP---
"""
