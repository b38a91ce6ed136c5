"""Addresses of clients that are entered by hand."""

from django.urls import path

from access.clients import api, pages

PAGES = [
    path("connections/clients", pages.clients, name="clients"),
    path("connections/clients/new", pages.client_new, name="client_new"),
    path("connections/clients/<cli:client_id>/remove", pages.client_remove, name="client_remove"),
]

API = [
    path("clients", api.ClientListView.as_view(), name="api_clients"),
    path("clients/<cli:client_id>/remove", api.ClientRemoveView.as_view(), name="api_client_remove"),
]

ACCESS = """
[console]

GET   clients                  agents.manage          HOP---
GET   client_new               agents.manage          HOP---
POST  client_new               agents.manage          HOP---
POST  client_remove            agents.manage          HOP---

[api]

GET    api_clients              agents:manage
POST   api_clients              agents:manage
POST   api_client_remove        agents:manage
"""
