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
