"""Addresses of oauth."""

from django.urls import path

from access.oauth import api

PAGES = [
    path(".well-known/oauth-protected-resource", api.protected_resource, name="oauth_protected_resource"),
    path(
        ".well-known/oauth-protected-resource/mcp",
        api.protected_resource,
        {"path": "/mcp"},
        name="oauth_protected_mcp",
    ),
    path(".well-known/oauth-authorization-server", api.authorization_server, name="oauth_authorization_server"),
]

API = [
    path("oauth/token", api.issue_token, name="api_oauth_token"),
]
