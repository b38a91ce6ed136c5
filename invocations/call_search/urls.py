"""Addresses of the search of calls."""

from django.urls import path

from invocations.call_search import api

API = [
    path("invocations", api.InvocationListView.as_view(), name="api_invocations"),
]
