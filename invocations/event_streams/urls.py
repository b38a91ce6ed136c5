"""Addresses of event streams."""

from django.urls import path

from invocations.event_streams import api

API = [
    path(
        "invocations/<inv:invocation_id>/events",
        api.InvocationEventsView.as_view(),
        name="api_invocation_events",
    ),
]

ACCESS = """
[api]

GET    api_invocation_events    invocations:read
"""
