"""Addresses of server accounts."""

from django.urls import path

from access.server_accounts import api, clients, pages

PAGES = [
    path("oauth/hub-client.json", clients.hub_client, name="oauth_hub_client"),
    path("server-accounts", pages.my_server_accounts, name="my_server_accounts"),
    path("server-accounts/begin", pages.server_account_begin, name="server_account_begin"),
    path("server-accounts/callback", pages.server_account_callback, name="server_account_callback"),
    path("server-accounts/callback/<slug:key>", pages.server_account_callback, name="server_account_own_callback"),
    path("server-accounts/servers", pages.account_servers, name="account_servers"),
    path("server-accounts/servers/client", pages.account_server_client, name="account_server_client"),
    path("server-accounts/<sac:account_id>", pages.server_account, name="server_account"),
    path("server-accounts/<sac:account_id>/connect", pages.server_account_connect, name="server_account_connect"),
    path("server-accounts/<sac:account_id>/agents", pages.server_account_agents, name="server_account_agents"),
    path("server-accounts/<sac:account_id>/end", pages.server_account_end, name="server_account_end"),
]

API = [
    path("server-accounts", api.ServerAccountListView.as_view(), name="api_server_accounts"),
    path(
        "server-accounts/<sac:account_id>/connect",
        api.ServerAccountConnectView.as_view(),
        name="api_server_account_connect",
    ),
    path(
        "server-accounts/<sac:account_id>/agents",
        api.ServerAccountAgentsView.as_view(),
        name="api_server_account_agents",
    ),
    path("server-accounts/<sac:account_id>/end", api.ServerAccountEndView.as_view(), name="api_server_account_end"),
    path("account-servers", api.AccountServerListView.as_view(), name="api_account_servers"),
    path("account-servers/accounts", api.TenantServerAccountListView.as_view(), name="api_tenant_server_accounts"),
    path(
        "account-servers/accounts/<sac:account_id>/revoke",
        api.ServerAccountRevokeView.as_view(),
        name="api_server_account_revoke",
    ),
]

ACCESS = """
[console]

GET   account_servers          secrets.manage         HOP---
POST  account_server_client    secrets.manage         HOP---

[api]

GET    api_server_accounts         -
POST   api_server_accounts         -
POST   api_server_account_connect  -
PUT    api_server_account_agents   -
POST   api_server_account_end      -
GET    api_account_servers         tools:operate
GET    api_tenant_server_accounts  tools:operate
POST   api_server_account_revoke   tools:operate

[people]

GET    api_account_servers         secrets.manage  HOP---
GET    api_tenant_server_accounts  secrets.manage  HOP---
POST   api_server_account_revoke   secrets.manage  HOP---
"""
