"""Addresses of dispatch."""

from django.urls import path

from invocations.dispatch import api

API = [
    path("dispatch", api.DispatchView.as_view(), name="api_dispatch"),
]

ACCESS = """
[api]

POST   api_dispatch             invocations:create
"""
