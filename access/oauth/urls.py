"""Addresses of oauth."""

from django.urls import path

from access.oauth import api, metadata

PAGES = [
    path(".well-known/oauth-protected-resource", metadata.protected_resource, name="oauth_protected_resource"),
    path(
        ".well-known/oauth-protected-resource/mcp",
        metadata.protected_resource,
        {"path": "/mcp"},
        name="oauth_protected_mcp",
    ),
    path(
        ".well-known/oauth-protected-resource/mcp/<slug:tenant>",
        metadata.tenant_mcp_resource_metadata,
        name="oauth_protected_tenant_mcp",
    ),
    path(".well-known/oauth-authorization-server", metadata.authorization_server, name="oauth_authorization_server"),
    path(".well-known/openid-configuration", metadata.authorization_server, name="oauth_openid_configuration"),
    path(".well-known/<path:rest>", metadata.nothing_there, name="oauth_nothing_known"),
    path("mcp/.well-known/<path:rest>", metadata.nothing_there, name="oauth_nothing_known_of_mcp"),
    path("mcp/<slug:tenant>/.well-known/<path:rest>", metadata.nothing_there, name="oauth_nothing_known_of_tenant_mcp"),
    path("oauth/token", api.issue_token, name="oauth_token"),
    path("oauth/revoke", api.revoke_token, name="oauth_revoke"),
    path("oauth/register", api.register, name="oauth_register"),
    # Where clients ask that know no metadata.
    path("authorize", metadata.nothing_there, name="oauth_guessed_authorize"),
    path("token", metadata.nothing_there, name="oauth_guessed_token"),
    path("register", metadata.nothing_there, name="oauth_guessed_register"),
]

API = [
    path("oauth/token", api.issue_token, name="api_oauth_token"),
]
