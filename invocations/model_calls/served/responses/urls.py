"""The address of OpenAI's Responses."""

from django.urls import path

from invocations.model_calls.served.responses import api

PAGES = [
    path("v1/responses", api.ResponsesView.as_view(), name="served_responses"),
]

ACCESS = """
[api]

POST   served_responses  models:call
"""
