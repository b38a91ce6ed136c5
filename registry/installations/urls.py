"""Addresses of installations."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.installations import api, pages

NAVIGATION = [
    NavigationEntry(
        key="installations",
        label=gettext_lazy("Installed tools"),
        icon="box",
        address="installations",
        permission="tools.view",
        job=Job.CATALOGUE,
        order=20,
    ),
]

PAGES = [
    path("installations", pages.installation_list, name="installations"),
    path("installations/shared", pages.shared_tool_list, name="shared_tools"),
    path("installations/shared/<str:publisher>/<str:name>", pages.installation_new, name="install"),
    path("installations/<str:name>", pages.installation, name="installation"),
    path("installations/<str:name>/settings", pages.installation_configure, name="installation_configure"),
    path("installations/<str:name>/<str:what>", pages.installation_change, name="installation_change"),
]

API = [
    path("catalogue", api.CatalogueView.as_view(), name="api_catalogue"),
    path("installations", api.InstallationListView.as_view(), name="api_installations"),
    path("installations/<str:tool_id>", api.InstallationView.as_view(), name="api_installation"),
    path(
        "installations/<str:tool_id>/pause",
        api.InstallationPauseView.as_view(),
        name="api_installation_pause",
    ),
    path(
        "installations/<str:tool_id>/resume",
        api.InstallationResumeView.as_view(),
        name="api_installation_resume",
    ),
    path(
        "installations/<str:tool_id>/remove",
        api.InstallationRemoveView.as_view(),
        name="api_installation_remove",
    ),
]

ACCESS = """
[console]

GET   installations            tools.view             HOPRAD
GET   shared_tools             tools.view             HOPRAD
GET   install                  tools.install          HOP---
POST  install                  tools.install          HOP---
GET   installation             tools.view             HOPRAD
POST  installation_configure   tools.install          HOP---
POST  installation_change      tools.install          HOP---

[api]

GET    api_catalogue            tools:read
GET    api_installations        tools:read
POST   api_installations        tools:operate
GET    api_installation         tools:read
PATCH  api_installation         tools:operate
POST   api_installation_pause   tools:operate
POST   api_installation_resume  tools:operate
POST   api_installation_remove  tools:operate
"""
