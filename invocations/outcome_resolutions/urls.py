"""Addresses of outcome resolutions."""

from django.urls import path

from invocations.outcome_resolutions import pages

PAGES = [
    path(
        "invocations/<inv:invocation_id>/resolve",
        pages.invocation_resolve,
        name="invocation_resolve",
    ),
]

ACCESS = """
[console]

GET   invocation_resolve       invocations.resolve    HOP---
POST  invocation_resolve       invocations.resolve    HOP---
"""
