"""Addresses of decide."""

from django.urls import path

from invocations.decide import api

API = [
    path("tools/<str:tool_id>/preflight", api.ToolPreflightView.as_view(), name="api_preflight"),
    path("preflight", api.PreflightsView.as_view(), name="api_preflights"),
]

ACCESS = """
[api]

POST   api_preflight            invocations:create
POST   api_preflights           invocations:create
"""
