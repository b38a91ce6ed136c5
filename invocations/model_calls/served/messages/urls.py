"""Addresses of Anthropic's Messages."""

from django.urls import path

from invocations.model_calls.served.messages import api

PAGES = [
    path("v1/messages", api.MessagesView.as_view(), name="served_messages"),
    path("v1/messages/count_tokens", api.MessageCountView.as_view(), name="served_message_count"),
]

ACCESS = """
[api]

POST   served_messages       models:call
POST   served_message_count  models:call
"""
