"""Addresses of model providers."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.model_providers import api, pages

NAVIGATION = [
    NavigationEntry(
        key="model_providers",
        label=gettext_lazy("Model providers"),
        icon="server",
        address="model_providers",
        permission="models.manage",
        job=Job.CATALOGUE,
        order=40,
    ),
]

# A provider's name has no hyphen, so it never is the word of the form.
PAGES = [
    path("model-providers", pages.provider_list, name="model_providers"),
    path("model-providers/new-provider", pages.provider_new, name="model_provider_new"),
    path("model-providers/<str:name>", pages.provider_detail, name="model_provider"),
    path("model-providers/<str:name>/edit", pages.provider_edit, name="model_provider_edit"),
    path("model-providers/<str:name>/<str:what>", pages.provider_change, name="model_provider_change"),
]

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

ACCESS = """
[console]

GET   model_providers             models.manage  HOP---
GET   model_provider_new          models.manage  HOP---
POST  model_provider_new          models.manage  HOP---
GET   model_provider              models.manage  HOP---
GET   model_provider_edit         models.manage  HOP---
POST  model_provider_edit         models.manage  HOP---
POST  model_provider_change       models.manage  HOP---

[api]

GET    api_model_providers         models:manage
POST   api_model_providers         models:manage
GET    api_model_provider          models:manage
PATCH  api_model_provider          models:manage
POST   api_model_provider_pause    models:manage
POST   api_model_provider_enable   models:manage
POST   api_model_provider_remove   models:manage
POST   api_connected_models        models:manage
PATCH  api_connected_model         models:manage
POST   api_connected_model_remove  models:manage

[people]

GET    api_model_providers         models.manage  HOP---
POST   api_model_providers         models.manage  HOP---
GET    api_model_provider          models.manage  HOP---
PATCH  api_model_provider          models.manage  HOP---
"""
