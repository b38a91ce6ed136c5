"""Addresses of the model catalogue."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.model_catalogue import api, pages

NAVIGATION = [
    NavigationEntry(
        key="models",
        label=gettext_lazy("Models"),
        icon="cpu",
        address="models",
        permission="tools.view",
        job=Job.CATALOGUE,
        order=30,
    ),
]

PAGES = [
    path("models", pages.model_list, name="models"),
    path("models/new", pages.model_new, name="model_new"),
    path("models/<str:model_id>", pages.model_detail, name="model"),
    path("models/<str:model_id>/edit", pages.model_edit, name="model_edit"),
    path("models/<str:model_id>/<str:what>", pages.model_change, name="model_change"),
]

API = [
    path("models", api.OfferedModelListView.as_view(), name="api_models"),
    path("models/<str:model_id>", api.OfferedModelView.as_view(), name="api_model"),
]

ACCESS = """
[console]

GET   models         tools.view     HOPRAD
GET   model          tools.view     HOPRAD
GET   model_new      models.manage  HOP---
POST  model_new      models.manage  HOP---
GET   model_edit     models.manage  HOP---
POST  model_edit     models.manage  HOP---
POST  model_change   models.manage  HOP---

[api]

GET    api_models  models:call
GET    api_model   models:call
"""
