"""Addresses of the model catalogue."""

from django.urls import path

from registry.model_catalogue import api

API = [
    path("models", api.OfferedModelListView.as_view(), name="api_models"),
    path("models/<str:model_id>", api.OfferedModelView.as_view(), name="api_model"),
]
