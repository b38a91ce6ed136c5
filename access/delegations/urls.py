"""Addresses of delegations."""

from django.urls import path

from access.delegations import api

API = [
    path("delegations", api.DelegationListView.as_view(), name="api_delegations"),
    path("delegations/<grt:grant_id>", api.DelegationView.as_view(), name="api_delegation"),
]

ACCESS = """
[api]

GET    api_delegations          grants:request
POST   api_delegations          delegations:create
GET    api_delegation           grants:request
DELETE api_delegation           delegations:create
"""
