"""Addresses of model providers."""

from django.urls import path

from registry.model_providers import api

API = [
    path("model-providers", api.ProviderListView.as_view(), name="api_model_providers"),
    path("model-providers/<str:name>", api.ProviderView.as_view(), name="api_model_provider"),
    path("model-providers/<str:name>/pause", api.ProviderPauseView.as_view(), name="api_model_provider_pause"),
    path("model-providers/<str:name>/enable", api.ProviderEnableView.as_view(), name="api_model_provider_enable"),
    path("model-providers/<str:name>/remove", api.ProviderRemoveView.as_view(), name="api_model_provider_remove"),
    path("model-providers/<str:name>/models", api.ModelListView.as_view(), name="api_connected_models"),
    path("model-providers/<str:name>/models/<str:alias>", api.ModelView.as_view(), name="api_connected_model"),
    path(
        "model-providers/<str:name>/models/<str:alias>/remove",
        api.ModelRemoveView.as_view(),
        name="api_connected_model_remove",
    ),
]
