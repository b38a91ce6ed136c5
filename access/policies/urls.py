"""Addresses of policies."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.policies import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="policies",
        label=gettext_lazy("Policy"),
        icon="scale",
        address="policies",
        permission="policies.view",
        job=Job.POLICY,
        order=10,
    ),
]

PAGES = [
    path("policies", pages.policies, name="policies"),
    path("policies/new", pages.policy_new, name="policy_new"),
    path("policies/<pol:policy_id>", pages.policy, name="policy"),
    path("policies/<pol:policy_id>/edit", pages.policy_edit, name="policy_edit"),
    path("policies/<pol:policy_id>/rules/new/<slug:kind>", pages.policy_rule_new, name="policy_rule_new"),
    path("policies/<pol:policy_id>/rules/remove", pages.policy_rule_remove, name="policy_rule_remove"),
    path("policies/<pol:policy_id>/discard", pages.policy_discard, name="policy_discard"),
    path("policies/<pol:policy_id>/roll-back", pages.policy_roll_back, name="policy_roll_back"),
]

API = [
    path("policies", api.PolicyListView.as_view(), name="api_policies"),
    path("policies/schema", api.PolicySchemaView.as_view(), name="api_policy_schema"),
    path("policies/check", api.PolicyCheckView.as_view(), name="api_policy_check"),
    path("policies/<pol:policy_id>", api.PolicyView.as_view(), name="api_policy"),
    path("policies/<pol:policy_id>/simulate", api.PolicySimulateView.as_view(), name="api_policy_simulate"),
    path("policies/<pol:policy_id>/analysis", api.PolicyAnalysisView.as_view(), name="api_policy_analysis"),
    path("policies/<pol:policy_id>/discard", api.PolicyDiscardView.as_view(), name="api_policy_discard"),
]

ACCESS = """
[console]

GET   policies                 policies.view          HOPRA-
GET   policy_new               policies.draft         HOP---
POST  policy_new               policies.draft         HOP---
GET   policy                   policies.view          HOPRA-
GET   policy_edit              policies.draft         HOP---
POST  policy_edit              policies.draft         HOP---
GET   policy_rule_new          policies.draft         HOP---
POST  policy_rule_new          policies.draft         HOP---
POST  policy_rule_remove       policies.draft         HOP---
POST  policy_discard           policies.draft         HOP---
POST  policy_roll_back         policies.publish       HOP---

[api]

GET    api_policies             policies:read
POST   api_policies             policies:draft
GET    api_policy_schema        policies:read
POST   api_policy_check         policies:draft
GET    api_policy               policies:read
PUT    api_policy               policies:draft
POST   api_policy_simulate      policies:draft
GET    api_policy_analysis      policies:read
POST   api_policy_discard       policies:draft
"""
