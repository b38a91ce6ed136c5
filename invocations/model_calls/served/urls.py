"""Addresses of served formats: at the root, where programs look that were written for others."""

from django.urls import path

from invocations.model_calls.served import api

PAGES = [
    path("v1/chat/completions", api.ChatCompletionsView.as_view(), name="served_chat_completions"),
    path("v1/embeddings", api.EmbeddingsView.as_view(), name="served_embeddings"),
    path("v1/rerank", api.RerankView.as_view(), name="served_rerank"),
]

ACCESS = """
[api]

POST   served_chat_completions  models:call
POST   served_embeddings        models:call
POST   served_rerank            models:call
"""
