"""Address of asking for a consent."""

from django.urls import path

from invocations.approvals import pages

PAGES = [path("invocations/<inv:invocation_id>/consent", pages.consent_ask, name="consent_ask")]

ACCESS = """
[console]

GET   consent_ask              grants.request         HOP--D
POST  consent_ask              grants.request         HOP--D
"""
