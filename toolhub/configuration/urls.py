"""Addresses of configuration."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from toolhub.configuration import api, pages

NAVIGATION = [
    NavigationEntry(
        key="configuration",
        label=gettext_lazy("Configuration"),
        icon="settings",
        address="configuration",
        permission="configuration.apply",
        job=Job.PEOPLE,
        order=40,
    ),
]

PAGES = [
    path("configuration", pages.configuration, name="configuration"),
    path("configuration/export", pages.configuration_export, name="configuration_export"),
]

API = [
    path(
        "configuration/plan",
        api.ConfigurationPlanView.as_view(),
        name="api_configuration_plan",
    ),
    path(
        "configuration/apply",
        api.ConfigurationApplyView.as_view(),
        name="api_configuration_apply",
    ),
    path(
        "configuration/export",
        api.ConfigurationExportView.as_view(),
        name="api_configuration_export",
    ),
    path(
        "configuration/schema",
        api.ConfigurationSchemaView.as_view(),
        name="api_configuration_schema",
    ),
]

ACCESS = """
[console]

GET   configuration            configuration.apply    HO----
POST  configuration            configuration.apply    HO----
GET   configuration_export     configuration.apply    HO----

[api]

POST   api_configuration_plan   configuration:apply
POST   api_configuration_apply  configuration:apply
GET    api_configuration_export configuration:apply
GET    api_configuration_schema configuration:apply
"""
