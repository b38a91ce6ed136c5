"""Addresses of model prices."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.model_prices import api, pages

NAVIGATION = [
    NavigationEntry(
        key="model_prices",
        label=gettext_lazy("Model prices"),
        icon="scroll-text",
        address="model_prices",
        permission="budgets.view",
        job=Job.BUDGETS,
        order=30,
    ),
]

PAGES = [
    path("model-prices", pages.price_list, name="model_prices"),
    path("model-prices/add", pages.price_add, name="model_price_add"),
    path("model-prices/new", pages.price_document, name="model_prices_new"),
    path("model-prices/<int:number>", pages.price_version, name="model_prices_version"),
]

API = [path("model-prices", api.ModelPricesView.as_view(), name="api_model_prices")]

ACCESS = """
[console]

GET   model_prices           budgets.view   HOPRA-
GET   model_prices_version   budgets.view   HOPRA-
GET   model_price_add        models.manage  HOP---
POST  model_price_add        models.manage  HOP---
GET   model_prices_new       models.manage  HOP---
POST  model_prices_new       models.manage  HOP---

[api]

GET    api_model_prices            models:manage
PUT    api_model_prices            models:manage

[people]

GET    api_model_prices            models.manage  HOP---
PUT    api_model_prices            models.manage  HOP---
"""
