"""Addresses of model prices."""

from django.urls import path

from registry.model_prices import api

API = [path("model-prices", api.ModelPricesView.as_view(), name="api_model_prices")]
