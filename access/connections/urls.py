"""Addresses of connections."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.connections import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="connections",
        label=gettext_lazy("Connected programs"),
        icon="link",
        address="connections",
        permission="agents.view",
        job=Job.AGENTS,
        order=30,
    ),
]

API = [
    path("connection-rule", api.ConnectionRuleView.as_view(), name="api_connection_rule"),
]

PAGES = [
    path("oauth/authorize", pages.authorize, name="authorize"),
    path("connections", pages.connections, name="connections"),
    path("connections/connect", pages.connect_client, name="connect_client"),
    path("connections/rule", pages.connection_rule, name="connection_rule"),
    path("connections/mine", pages.my_connections, name="my_connections"),
    path("connections/<con:connection_id>/end", pages.connection_end, name="connection_end"),
]

ACCESS = """
[console]

GET   connections              agents.view            HOPRA-
GET   connect_client           agents.connect         HOP---
GET   connection_rule          agents.manage          HOP---
POST  connection_rule          agents.manage          HOP---
POST  connection_end           agents.manage          HOP---

[api]

GET    api_connection_rule         agents:manage
PUT    api_connection_rule         agents:manage

[people]

GET    api_connection_rule         agents.manage  HOP---
PUT    api_connection_rule         agents.manage  HOP---
"""
