"""Addresses of grants."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.grants import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="grants",
        label=gettext_lazy("Grants"),
        icon="handshake",
        address="grants",
        permission="grants.view",
        job=Job.AGENTS,
        order=20,
    ),
    NavigationEntry(
        key="grant_requests",
        label=gettext_lazy("Requests for grants"),
        icon="hand",
        address="grant_requests",
        permission="grants.view",
        job=Job.APPROVALS,
        order=20,
    ),
]

PAGES = [
    path("grants", pages.grant_list, name="grants"),
    path("grants/new", pages.grant_new, name="grant_new"),
    path("grants/revoke", pages.grants_revoke, name="grants_revoke"),
    path("grants/requests", pages.grant_request_list, name="grant_requests"),
    path("grants/requests/new", pages.grant_request_new, name="grant_request_new"),
    path("grants/requests/<grq:request_id>", pages.grant_request, name="grant_request"),
    path("grants/requests/<grq:request_id>/approve", pages.grant_request_approve, name="grant_request_approve"),
    path("grants/requests/<grq:request_id>/decline", pages.grant_request_decline, name="grant_request_decline"),
    path("grants/<grt:grant_id>", pages.grant, name="grant"),
    path("grants/<grt:grant_id>/extend", pages.grant_extend, name="grant_extend"),
    path("grants/<grt:grant_id>/revoke", pages.grant_revoke, name="grant_revoke"),
]

API = [
    path("grants", api.GrantListView.as_view(), name="api_grants"),
    path("grants/<grt:grant_id>", api.GrantView.as_view(), name="api_grant"),
    path("grants/<grt:grant_id>/extend", api.GrantExtendView.as_view(), name="api_grant_extend"),
    path("grants/<grt:grant_id>/revoke", api.GrantRevokeView.as_view(), name="api_grant_revoke"),
    path("grants/requests", api.GrantRequestListView.as_view(), name="api_grant_requests"),
    path("grants/requests/<grq:request_id>", api.GrantRequestView.as_view(), name="api_grant_request"),
]

ACCESS = """
[console]

GET   grants                   grants.view            HOPRA-
GET   grant_new                grants.give            HOP---
POST  grant_new                grants.give            HOP---
GET   grants_revoke            grants.give            HOP---
POST  grants_revoke            grants.give            HOP---
GET   grant_requests           grants.view            HOPRA-
GET   grant_request_new        grants.request         HOP--D
POST  grant_request_new        grants.request         HOP--D
GET   grant_request            grants.view            HOPRA-
POST  grant_request_approve    grants.give            HOP---
POST  grant_request_decline    grants.give            HOP---
GET   grant                    grants.view            HOPRA-
POST  grant_extend             grants.give            HOP---
POST  grant_revoke             grants.give            HOP---

[api]

GET    api_grants               grants:manage
POST   api_grants               grants:manage
GET    api_grant                grants:manage
POST   api_grant_extend         grants:manage
POST   api_grant_revoke         grants:manage
GET    api_grant_requests       grants:request
POST   api_grant_requests       grants:request
GET    api_grant_request        grants:request
"""
