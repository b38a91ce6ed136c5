"""Addresses of model prefixes."""

from django.urls import path

from registry.model_prefixes import api

API = [
    path("model-prefix", api.ModelPrefixView.as_view(), name="api_model_prefix"),
    path("model-prefix/versions", api.ModelPrefixVersionListView.as_view(), name="api_model_prefix_versions"),
]

ACCESS = """
[api]

GET    api_model_prefix            models:manage
PUT    api_model_prefix            models:manage
GET    api_model_prefix_versions   models:manage

[people]

GET    api_model_prefix            models.manage  HOP---
PUT    api_model_prefix            models.manage  HOP---
GET    api_model_prefix_versions   models.manage  HOP---
"""
