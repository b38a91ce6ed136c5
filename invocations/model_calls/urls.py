"""Addresses of model calls."""

from django.urls import path

from invocations.model_calls import api

API = [
    path("models/<str:model_id>/chat", api.ModelChatView.as_view(), name="api_model_chat"),
    path("models/<str:model_id>/embed", api.ModelEmbedView.as_view(), name="api_model_embed"),
    path("models/<str:model_id>/rerank", api.ModelRerankView.as_view(), name="api_model_rerank"),
    path("models/<str:model_id>/preflight", api.ModelPreflightView.as_view(), name="api_model_preflight"),
]

ACCESS = """
[api]

POST   api_model_chat       models:call
POST   api_model_embed      models:call
POST   api_model_rerank     models:call
POST   api_model_preflight  models:call
"""
