"""Addresses of served formats: at the root, where programs look that were written for others."""

from django.urls import path

from invocations.model_calls.served import api, model_lists
from invocations.model_calls.served.gemini.urls import build_verbs

PAGES = [
    path("v1/chat/completions", api.ChatCompletionsView.as_view(), name="served_chat_completions"),
    path("v1/embeddings", api.EmbeddingsView.as_view(), name="served_embeddings"),
    path("v1/rerank", api.RerankView.as_view(), name="served_rerank"),
    path("v1/models", model_lists.ServedModelListView.as_view(), name="served_models"),
    # Before the address of a model, which would take them. Below v1beta they stand in the document.
    *build_verbs("v1", "_v1", schema=None),
    path("v1/models/<str:model_id>", model_lists.ServedModelView.as_view(), name="served_model"),
]
