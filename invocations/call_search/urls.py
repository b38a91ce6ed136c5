"""Addresses of the search of calls."""

from django.urls import path

from invocations.call_search import api, pages

PAGES = [
    path("invocations", pages.invocation_list, name="invocations"),
    path("invocations/columns", pages.call_columns, name="call_columns"),
]

API = [
    path("invocations", api.InvocationListView.as_view(), name="api_invocations"),
]

ACCESS = """
[console]

GET   invocations              invocations.view       HOPRAD
POST  call_columns             invocations.view       HOPRAD

[api]

GET    api_invocations          invocations:read

[people]

GET    api_invocations             invocations.view  HOPRAD
"""
