"""Addresses of secrets."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.secrets import api, pages

NAVIGATION = [
    NavigationEntry(
        key="secrets",
        label=gettext_lazy("Secrets"),
        icon="lock",
        address="secrets",
        permission="secrets.manage",
        job=Job.CATALOGUE,
        order=60,
    ),
]

PAGES = [
    path("secrets", pages.secret_list, name="secrets"),
    path("secrets/<str:name>/remove", pages.secret_remove, name="secret_remove"),
]

API = [
    path("secrets", api.SecretListView.as_view(), name="api_secrets"),
    path("secrets/<str:name>", api.SecretView.as_view(), name="api_secret"),
]

ACCESS = """
[console]

GET   secrets                  secrets.manage         HOP---
POST  secrets                  secrets.manage         HOP---
POST  secret_remove            secrets.manage         HOP---

[api]

GET    api_secrets              tools:operate
PUT    api_secret               tools:operate
DELETE api_secret               tools:operate
"""
