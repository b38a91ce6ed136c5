"""Addresses of proposals."""

from django.urls import path

from invocations.proposals import api

API = [
    path("proposals", api.ProposalView.as_view(), name="api_proposals"),
]

ACCESS = """
[api]

POST   api_proposals            invocations:create
"""
