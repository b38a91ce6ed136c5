"""Addresses of lists of models. Those of Google's verbs, which this would take for models, stand before them: packages go by name."""

from django.urls import path

from invocations.model_calls.served.model_lists import api

PAGES = [
    path("v1/models", api.ServedModelListView.as_view(), name="served_models"),
    path("v1/models/<str:model_id>", api.ServedOneModelView.as_view(), name="served_model"),
    path("v1beta/models", api.GoogleModelListView.as_view(), name="served_google_models"),
    path("v1beta/models/<path:model_id>", api.GoogleModelView.as_view(), name="served_google_model"),
]

ACCESS = """
[api]

GET    served_models         models:call
GET    served_model          models:call
GET    served_google_models  models:call
GET    served_google_model   models:call
"""
